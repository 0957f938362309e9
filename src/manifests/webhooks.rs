//! The webhook configurations.
//!
//! Every field that the API server would default is set, or tools that compare would always see drift.
//! Only `caBundle` is missing: it is injected at run time, and a placeholder would conflict with the
//! injector.
#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations,
    ServiceReference, ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::{labels, rbac};
use crate::api::names;

/// The API server waits for as long as this before it calls a webhook failed. An answer takes
/// milliseconds, so one that takes seconds will not come.
const TIMEOUT_SECONDS: i32 = 5;
/// A webhook that cannot be asked refuses. See decision 0014 for the reasons.
const FAILURE_POLICY: &str = "Fail";
/// The version that we are asked in: the hub of every kind.
const HUB: &str = "v1";
/// We are asked in that version whatever the user wrote: the API server converts first.
const MATCH_POLICY: &str = "Equivalent";
const SIDE_EFFECTS: &str = "None";
const REVIEW_VERSION: &str = "v1";
const SCOPE: &str = "Namespaced";

/// Fills in what is not said, and brings back what an older version cannot say.
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
        // What another webhook adds afterwards may want a default as well.
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
            // Nothing is filled in there. A number that is too large is refused here, because the
            // schema is asked before a validator is, and says a bound and no way out.
            webhook("scale-default", rules(&["UPDATE"], scales()), None),
        ]),
    }
}

/// Refuses what must not be.
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
            // The object of such a request is a Scale, in which a 0 is left out: a condition over
            // it would fail on the very number that matters most.
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

/// One rule for each group, about its kinds and nothing else: a webhook that is asked about its own
/// Secret, Lease or pods could stop itself from ever starting.
fn rules(operations: &[&str], resources: Vec<(&str, Vec<String>)>) -> Vec<RuleWithOperations> {
    let rule = |(group, resources): (&str, Vec<String>)| RuleWithOperations {
        api_groups: Some(vec![group.to_owned()]),
        api_versions: Some(vec![HUB.to_owned()]),
        operations: Some(operations.iter().map(|it| (*it).to_owned()).collect()),
        resources: Some(resources),
        scope: Some(SCOPE.to_owned()),
    };
    resources.into_iter().map(rule).collect()
}

/// The objects themselves.
fn objects() -> Vec<(&'static str, Vec<String>)> {
    rbac::by_group(|kind| Some(kind.plural()))
}

/// Their scale, if they have one: a request for it calls no webhook of the objects themselves.
fn scales() -> Vec<(&'static str, Vec<String>)> {
    rbac::by_group(|kind| rbac::has_scale(kind).then(|| format!("{}/scale", kind.plural())))
}

/// Controllers and people change labels, annotations and finalizers all the time; there is nothing
/// to say to that. In an older version we are always asked, because a request may come without the
/// annotation that carries what the version cannot say, or with a forged one.
fn spec_changed() -> MatchCondition {
    condition("changes-the-spec-or-is-in-an-older-version", spec_changed_expression())
}

fn spec_changed_expression() -> String {
    format!(
        "request.operation != 'UPDATE' || request.requestKind.version != '{HUB}' || \
         !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"
    )
}

/// A server-side apply that withdraws a field may leave the spec as it was: while another manager
/// speaks an older version, the API server brings the field back. Then only the list of what the
/// applier owns of the spec has changed.
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

/// Whatever is wrong with an object that goes, it must be able to go: its finalizers are removed by
/// updates. The old object says it, because a request cannot forge that one.
fn not_terminating() -> MatchCondition {
    condition(
        "is-not-being-deleted",
        "request.operation != 'UPDATE' || !has(oldObject.metadata.deletionTimestamp)".to_owned(),
    )
}

/// A deletion of what nobody protected must not depend on us.
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

/// A namespace that goes must go, and so must what has lost its owner.
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
