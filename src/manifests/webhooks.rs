//! The webhook configurations.
//!
//! Every field that the API server would default is set, or tools that compare would always see
//! drift. Only `caBundle` is missing: it is injected at run time, and a placeholder would conflict
//! with the injector.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations,
    ServiceReference, ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::{labels, rbac};
use crate::api::names;

/// The timeout of the API server. A response takes milliseconds, so after seconds none will come.
const TIMEOUT_SECONDS: i32 = 5;
/// Requests are rejected while the webhook is unavailable; decision 0014 has the reasons.
const FAILURE_POLICY: &str = "Fail";
/// The version of the reviewed objects: the hub version of every kind.
const HUB: &str = "v1";
/// Reviews are in the hub version, whatever version the request has: the API server converts first.
const MATCH_POLICY: &str = "Equivalent";
const SIDE_EFFECTS: &str = "None";
const REVIEW_VERSION: &str = "v1";
const SCOPE: &str = "Namespaced";

/// Sets defaults, and restores fields that an older version does not have.
pub(super) fn mutating(namespace: &str) -> MutatingWebhookConfiguration {
    let webhook = |prefix, rules, conditions| MutatingWebhook {
        name: name(prefix),
        client_config: client(namespace, names::MUTATE_PATH),
        rules: Some(rules),
        match_conditions: conditions,
        match_policy: Some(MATCH_POLICY.to_owned()),
        namespace_selector: Some(LabelSelector::default()),
        object_selector: Some(LabelSelector::default()),
        failure_policy: Some(FAILURE_POLICY.to_owned()),
        // Fields that another webhook adds afterwards may need defaults.
        reinvocation_policy: Some("IfNeeded".to_owned()),
        side_effects: SIDE_EFFECTS.to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        admission_review_versions: vec![REVIEW_VERSION.to_owned()],
    };
    MutatingWebhookConfiguration {
        metadata: labels::cluster_scoped(names::WEBHOOK_CONFIGURATION),
        webhooks: Some(vec![
            webhook(
                "default",
                rules(&["CREATE", "UPDATE"], objects()),
                Some(vec![spec_changed_or_released()]),
            ),
            // Sets no defaults. It rejects a value that is too large, because the schema is checked
            // before validating webhooks, and its message has the bound but no remedy.
            webhook("scale-default", rules(&["UPDATE"], scales()), None),
        ]),
    }
}

/// Validates objects and protects them from deletion.
pub(super) fn validating(namespace: &str) -> ValidatingWebhookConfiguration {
    let webhook = |prefix, rules, conditions| ValidatingWebhook {
        name: name(prefix),
        client_config: client(namespace, names::VALIDATE_PATH),
        rules: Some(rules),
        match_conditions: conditions,
        match_policy: Some(MATCH_POLICY.to_owned()),
        namespace_selector: Some(LabelSelector::default()),
        object_selector: Some(LabelSelector::default()),
        failure_policy: Some(FAILURE_POLICY.to_owned()),
        side_effects: SIDE_EFFECTS.to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        admission_review_versions: vec![REVIEW_VERSION.to_owned()],
    };
    ValidatingWebhookConfiguration {
        metadata: labels::cluster_scoped(names::WEBHOOK_CONFIGURATION),
        webhooks: Some(vec![
            webhook(
                "check",
                rules(&["CREATE", "UPDATE"], objects()),
                Some(vec![not_terminating(), spec_changed()]),
            ),
            // The object of the request is a Scale, which omits 0: a match condition on it would
            // fail for the most important value.
            webhook("scale", rules(&["UPDATE"], scales()), None),
            webhook(
                "protect",
                rules(&["DELETE"], objects()),
                Some(vec![has_deletion_protection(), not_garbage_collection()]),
            ),
        ]),
    }
}

/// The name of a webhook, which must have dots.
fn name(prefix: &str) -> String {
    format!("{prefix}.quorate.appdelivery.cncf.io")
}

fn client(namespace: &str, path: &str) -> WebhookClientConfig {
    WebhookClientConfig {
        service: Some(ServiceReference {
            namespace: namespace.to_owned(),
            name: names::WEBHOOK_SERVICE.to_owned(),
            path: Some(path.to_owned()),
            port: Some(names::WEBHOOK_SERVICE_PORT),
        }),
        ..WebhookClientConfig::default()
    }
}

/// One rule for each group, with only the operator's kinds: a webhook for its own Secret, Lease or
/// pods could prevent itself from starting.
fn rules(operations: &[&str], resources: Vec<(&str, Vec<String>)>) -> Vec<RuleWithOperations> {
    let rule = |(group, resources): (&str, Vec<String>)| RuleWithOperations {
        api_groups: Some(vec![group.to_owned()]),
        api_versions: Some(vec![HUB.to_owned()]),
        operations: Some(operations.iter().map(|operation| (*operation).to_owned()).collect()),
        resources: Some(resources),
        scope: Some(SCOPE.to_owned()),
    };
    resources.into_iter().map(rule).collect()
}

/// The resources of all kinds.
fn objects() -> Vec<(&'static str, Vec<String>)> {
    rbac::by_group(|kind| Some(kind.plural()))
}

/// The scale subresources: requests for them do not call the webhooks of the resources.
fn scales() -> Vec<(&'static str, Vec<String>)> {
    rbac::by_group(|kind| rbac::has_scale(kind).then(|| format!("{}/scale", kind.plural())))
}

/// Skips updates of metadata only, which are frequent. Requests in an older version are always
/// reviewed: they may lack the annotation with the preserved fields, or have a forged one.
fn spec_changed() -> MatchCondition {
    condition("changes-the-spec-or-is-in-an-older-version", spec_changed_expression())
}

fn spec_changed_expression() -> String {
    format!(
        "request.operation != 'UPDATE' || request.requestKind.version != '{HUB}' || \
         !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"
    )
}

/// A server-side apply that releases a field may leave the spec unchanged: while another manager
/// uses an older version, the API server restores the field. Then only the managed fields of the
/// applier have changed.
fn spec_changed_or_released() -> MatchCondition {
    let changed = spec_changed_expression();
    condition(
        "changes-the-spec-or-what-is-applied-or-is-in-an-older-version",
        format!(
            "{changed} || has(request.options) && has(request.options.fieldManager) && \
             has(object.metadata.managedFields) && has(oldObject.metadata.managedFields) && \
             oldObject.metadata.managedFields.exists(before, before.operation == 'Apply' && \
             has(before.manager) && before.manager == request.options.fieldManager && \
             has(before.fieldsV1) && 'f:spec' in before.fieldsV1 && \
             !object.metadata.managedFields.exists(after, after.operation == 'Apply' && \
             has(after.manager) && after.manager == before.manager && \
             has(after.fieldsV1) && 'f:spec' in after.fieldsV1 && \
             after.fieldsV1['f:spec'] == before.fieldsV1['f:spec']))"
        ),
    )
}

/// A terminating object can always be updated, even if invalid: its finalizers are removed by
/// updates. The old object decides, because a request cannot forge it.
fn not_terminating() -> MatchCondition {
    condition(
        "is-not-being-deleted",
        "request.operation != 'UPDATE' || !has(oldObject.metadata.deletionTimestamp)".to_owned(),
    )
}

/// Deletion of an unprotected object does not depend on the webhook.
fn has_deletion_protection() -> MatchCondition {
    let annotation = names::DELETION_PROTECTION_ANNOTATION;
    condition(
        "is-protected",
        format!(
            "has(oldObject.metadata.annotations) && \
             '{annotation}' in oldObject.metadata.annotations && \
             oldObject.metadata.annotations['{annotation}'] == 'true'"
        ),
    )
}

/// Namespace deletion and garbage collection are never blocked.
fn not_garbage_collection() -> MatchCondition {
    let cleaners = names::GARBAGE_COLLECTION_USERS.map(|user| format!("'{user}'")).join(", ");
    condition(
        "is-not-kubernetes-cleaning-up",
        format!("!(request.userInfo.username in [{cleaners}])"),
    )
}

fn condition(name: &str, expression: String) -> MatchCondition {
    MatchCondition { name: name.to_owned(), expression }
}
