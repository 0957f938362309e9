//! What a person would look at first when something does not come: pods, their conditions and logs, events.

use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod};
use kube::api::{ListParams, LogParams};
use kube::{Api, Client, ResourceExt};

use crate::waiting::phase;

/// A page on a namespace. What cannot be read is said so.
pub async fn of_namespace(client: &Client, namespace: &str) -> String {
    let mut page = String::new();
    let all = ListParams::default();
    match Api::<Pod>::namespaced(client.clone(), namespace).list(&all).await {
        Ok(pods) => {
            for pod in pods {
                add_pod(&mut page, client, namespace, &pod).await;
            }
        }
        Err(error) => add(&mut page, &format!("pods cannot be read: {error}")),
    }
    match Api::<PersistentVolumeClaim>::namespaced(client.clone(), namespace).list(&all).await {
        Ok(claims) => {
            for claim in claims {
                let status = claim.status.clone().unwrap_or_default();
                let line =
                    format!("claim {}: {}", claim.name_any(), status.phase.unwrap_or_default());
                add(&mut page, &line);
            }
        }
        Err(error) => add(&mut page, &format!("claims cannot be read: {error}")),
    }
    match Api::<Event>::namespaced(client.clone(), namespace).list(&all).await {
        Ok(events) => {
            for event in events {
                let about = event.involved_object.name.unwrap_or_default();
                let (reason, words) =
                    (event.reason.unwrap_or_default(), event.message.unwrap_or_default());
                add(&mut page, &format!("event {about}: {reason}: {words}"));
            }
        }
        Err(error) => add(&mut page, &format!("events cannot be read: {error}")),
    }
    page
}

async fn add_pod(page: &mut String, client: &Client, namespace: &str, pod: &Pod) {
    let name = pod.name_any();
    add(page, &format!("pod {name}: {}", phase(pod)));
    let status = pod.status.clone().unwrap_or_default();
    for condition in
        status.conditions.into_iter().flatten().filter(|condition| condition.status != "True")
    {
        let words = condition.message.or(condition.reason).unwrap_or_default();
        add(page, &format!("  not {}: {words}", condition.type_));
    }
    for container in status.container_statuses.into_iter().flatten() {
        if let Some(waiting) = container.state.and_then(|state| state.waiting) {
            let words = waiting.message.or(waiting.reason).unwrap_or_default();
            add(page, &format!("  container {} waits: {words}", container.name));
        }
        let last_lines = LogParams {
            container: Some(container.name.clone()),
            tail_lines: Some(15),
            ..LogParams::default()
        };
        let pods = Api::<Pod>::namespaced(client.clone(), namespace);
        if let Ok(log) = pods.logs(&name, &last_lines).await {
            for line in log.lines() {
                add(page, &format!("  {} | {line}", container.name));
            }
        }
    }
}

fn add(page: &mut String, line: &str) {
    page.push_str("  ");
    page.push_str(line);
    page.push('\n');
}
