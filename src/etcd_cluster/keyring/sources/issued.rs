//! Asks cert-manager for the certificates of one side, and looks at what it has made.
//! Comes in: who signs, and who the members are. Goes out: an offer. May touch: `ports`. What is asked for is applied only
//! where it differs. The Secrets are cert-manager's: nothing of them is changed but with whom they go.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Resource, ResourceExt};
use serde_json::json;

use super::super::{Circle, KeyringError};
use crate::api::names;
use crate::etcd_cluster::furnish::covers;
use crate::etcd_cluster::identity::given::{Flaw, Given};
use crate::etcd_cluster::identity::issued::{Certificate, For, Issuer};
use crate::etcd_cluster::identity::offer::{Offer, Pairs, Wish};
use crate::etcd_cluster::identity::roots::{MOST_GIVEN, Roots, Side};
use crate::pki::leaf::Signed;
use crate::ports::objects::{ObjectError, Objects};

/// What became of one certificate.
type Outcome = Result<(Given, Option<Flaw>), Flaw>;

/// What cert-manager offers one side.
pub(super) async fn offer(
    objects: &Objects,
    circle: &Circle<'_>,
    issuer: &Issuer<'_>,
    now: Timestamp,
) -> Result<Offer, KeyringError> {
    let desk = Desk { objects, circle, issuer, now };
    let (own, soon) = match desk.one(&For::Operator).await? {
        Ok(own) => own,
        Err(flaw) => return Ok(Offer::kept(Some(flaw), true)),
    };
    let (mut ca, mut flaws) = (own.ca.clone(), Vec::new());
    flaws.extend(soon);
    let application = match issuer.side {
        Side::Client => Some(desk.one(&For::Applications).await?),
        Side::Peer => None,
    };
    let mut take = |outcome: Outcome| -> Option<Signed> {
        match outcome {
            Ok((given, soon)) => {
                ca.extend(given.ca);
                flaws.extend(soon);
                Some(given.pair)
            }
            Err(flaw) => {
                flaws.push(flaw);
                None
            }
        }
    };
    let application = application.and_then(&mut take);
    let mut each = BTreeMap::new();
    for (name, uid) in &circle.members {
        let outcome = desk.one(&For::Member(name.clone(), uid.clone())).await?;
        each.extend(take(outcome).map(|pair| (name.clone(), pair)));
    }
    let roots = Roots::given(ca);
    if roots.others.len() > MOST_GIVEN {
        return Ok(Offer::kept(Some(Flaw::TooMany(desk.name(&For::Operator))), true));
    }
    let stops = flaws.iter().position(Flaw::stops);
    Ok(Offer {
        wish: Some(Wish { roots, pair: Some(own.pair) }),
        pairs: Pairs::Each(each),
        application,
        flaw: stops.or(Some(0)).and_then(|at| flaws.get(at).cloned()),
        is_given: true,
    })
}

/// What is needed for each of them.
struct Desk<'a> {
    objects: &'a Objects,
    circle: &'a Circle<'a>,
    issuer: &'a Issuer<'a>,
    now: Timestamp,
}

impl Desk<'_> {
    fn name(&self, whose: &For) -> String {
        self.issuer.certificate(self.circle.blueprint, whose).name_any()
    }

    /// Asks for one, and looks at what there is of it.
    async fn one(&self, whose: &For) -> Result<Outcome, KeyringError> {
        let wanted = self.issuer.certificate(self.circle.blueprint, whose);
        let (name, namespace) = (wanted.name_any(), self.circle.blueprint.namespace);
        let secret: Option<Secret> =
            self.objects.get(namespace, &name).await.map_err(KeyringError::Read)?;
        let found: Option<Certificate> = match self.objects.get(namespace, &name).await {
            Ok(found) => found,
            Err(error) if error.is_of_unknown_kind() => return Ok(Err(Flaw::NotServed)),
            Err(error) => return Err(KeyringError::Read(error)),
        };
        // cert-manager would write over whatever has the name.
        let is_ours = found.as_ref().is_none_or(|it| self.is_ours(it))
            && secret.as_ref().is_none_or(|it| self.is_ours(it));
        if !is_ours {
            return Err(KeyringError::Taken(name));
        }
        let is_right =
            found.as_ref().is_some_and(|it| covers(&json!(it.spec), &json!(wanted.spec)));
        if !is_right {
            match self.objects.apply(&wanted).await {
                Ok(_) => {}
                Err(ObjectError::Call(error)) if error.is_of_unknown_kind() => {
                    return Ok(Err(Flaw::NotServed));
                }
                Err(error) => return Err(KeyringError::Write(error)),
            }
        }
        let Some(secret) = secret else {
            let said = found.as_ref().and_then(Certificate::reason);
            let said = said.map(|it| format!(": {it}")).unwrap_or_default();
            let words = format!("cert-manager has not made the Secret {name} yet{said}");
            return Ok(Err(Flaw::Awaited(words)));
        };
        self.goes_with(&secret, &wanted).await?;
        let needs = self.issuer.needs(self.circle.blueprint, whose);
        Ok(Given::read(&secret, &needs, self.now))
    }

    fn is_ours<K: Resource>(&self, object: &K) -> bool {
        let uid = object.labels().get(names::CLUSTER_UID_LABEL).map(String::as_str);
        uid == Some(self.circle.blueprint.uid)
    }

    /// cert-manager leaves its Secrets behind: they go with whom they are for.
    async fn goes_with(&self, secret: &Secret, wanted: &Certificate) -> Result<(), KeyringError> {
        let owners = wanted.metadata.owner_references.clone();
        let has: Vec<&str> = secret.owner_references().iter().map(|it| it.uid.as_str()).collect();
        let shall: Vec<&str> = owners.iter().flatten().map(|it| it.uid.as_str()).collect();
        if has == shall {
            return Ok(());
        }
        let patch = json!({ "metadata": { "ownerReferences": owners } });
        let (namespace, name) = (self.circle.blueprint.namespace, secret.name_any());
        let done = self.objects.merge::<Secret>(namespace, &name, &patch).await;
        done.map(drop).map_err(KeyringError::Write)
    }
}
