//! Diagnostics of a namespace for failure reports: pods with their conditions and logs, PVCs and
//! events.

use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod};
use kube::api::{ListParams, LogParams};
use kube::{Api, Client, ResourceExt};

use crate::waiting::phase;

/// A report on a namespace, with an error line for what cannot be read.
pub async fn describe_namespace(client: &Client, namespace: &str) -> String {
    let mut report = String::new();
    let all = ListParams::default();
    match Api::<Pod>::namespaced(client.clone(), namespace).list(&all).await {
        Ok(pods) => {
            for pod in pods {
                add_pod(&mut report, client, namespace, &pod).await;
            }
        }
        Err(error) => add(&mut report, &format!("pods cannot be read: {error}")),
    }
    match Api::<PersistentVolumeClaim>::namespaced(client.clone(), namespace).list(&all).await {
        Ok(claims) => {
            for claim in claims {
                let status = claim.status.clone().unwrap_or_default();
                let line =
                    format!("claim {}: {}", claim.name_any(), status.phase.unwrap_or_default());
                add(&mut report, &line);
            }
        }
        Err(error) => add(&mut report, &format!("claims cannot be read: {error}")),
    }
    match Api::<Event>::namespaced(client.clone(), namespace).list(&all).await {
        Ok(events) => {
            for event in events {
                let about = event.involved_object.name.unwrap_or_default();
                let (reason, message) =
                    (event.reason.unwrap_or_default(), event.message.unwrap_or_default());
                add(&mut report, &format!("event {about}: {reason}: {message}"));
            }
        }
        Err(error) => add(&mut report, &format!("events cannot be read: {error}")),
    }
    report
}

async fn add_pod(report: &mut String, client: &Client, namespace: &str, pod: &Pod) {
    let name = pod.name_any();
    add(report, &format!("pod {name}: {}", phase(pod)));
    let status = pod.status.clone().unwrap_or_default();
    for condition in
        status.conditions.into_iter().flatten().filter(|condition| condition.status != "True")
    {
        let message = condition.message.or(condition.reason).unwrap_or_default();
        add(report, &format!("  not {}: {message}", condition.type_));
    }
    for container in status.container_statuses.into_iter().flatten() {
        if let Some(waiting) = container.state.and_then(|state| state.waiting) {
            let message = waiting.message.or(waiting.reason).unwrap_or_default();
            add(report, &format!("  container {} waits: {message}", container.name));
        }
        let last_lines = LogParams {
            container: Some(container.name.clone()),
            tail_lines: Some(15),
            ..LogParams::default()
        };
        let pods = Api::<Pod>::namespaced(client.clone(), namespace);
        if let Ok(log) = pods.logs(&name, &last_lines).await {
            for line in log.lines() {
                add(report, &format!("  {} | {line}", container.name));
            }
        }
    }
}

fn add(report: &mut String, line: &str) {
    report.push_str("  ");
    report.push_str(line);
    report.push('\n');
}
