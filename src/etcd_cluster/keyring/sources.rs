//! Where the certificates of each side come from, as the spec says, and what is there of them.
//! Comes in: the spec, and who the members are. Goes out: an offer for each side. May touch: `ports`. A Secret of somebody
//! else's is read by its name and never written. One that could not be read is an error, and never a missing one.

mod issued;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;

use super::{Circle, Keyring, KeyringError};
use crate::api::etcd_cluster::checked::Certificates;
use crate::etcd_cluster::identity::given::{Flaw, Given, Needs};
use crate::etcd_cluster::identity::issued::Issuer;
use crate::etcd_cluster::identity::offer::{Offer, Offers, Pairs, Wish};
use crate::etcd_cluster::identity::roots::{Roots, Side};
use crate::ports::objects::Objects;

impl Keyring {
    /// What both sides are offered.
    pub(super) async fn offers(
        &self,
        objects: &Objects,
        circle: &Circle<'_>,
        now: Timestamp,
    ) -> Result<Offers, KeyringError> {
        Ok(Offers {
            client: self.offer(objects, circle, Side::Client, now).await?,
            peer: self.offer(objects, circle, Side::Peer, now).await?,
        })
    }

    async fn offer(
        &self,
        objects: &Objects,
        circle: &Circle<'_>,
        side: Side,
        now: Timestamp,
    ) -> Result<Offer, KeyringError> {
        let spec = circle.blueprint.spec;
        let source = match side {
            Side::Client => &spec.client_tls,
            Side::Peer => &spec.peer_tls,
        };
        match source {
            // Who still shows something goes on with it to the end.
            Certificates::Disabled if circle.is_used(side) => Ok(Offer::kept(None, false)),
            Certificates::Managed | Certificates::Disabled => Ok(Offer::ours()),
            Certificates::Secret(name) => {
                let found = objects.get(circle.blueprint.namespace, name).await;
                let found: Option<Secret> = found.map_err(KeyringError::Read)?;
                Ok(of_one(found.as_ref(), name, circle, side, now))
            }
            Certificates::Issuer { name, kind } => {
                let issuer = Issuer { name, kind: *kind, side, lifetimes: self.lifetimes };
                issued::offer(objects, circle, &issuer, now).await
            }
        }
    }
}

/// What one Secret for all members offers.
fn of_one(
    secret: Option<&Secret>,
    name: &str,
    circle: &Circle<'_>,
    side: Side,
    now: Timestamp,
) -> Offer {
    let needs = Needs::of_all(circle.blueprint, side);
    let read = secret.map(|it| Given::read(it, &needs, now));
    match read.unwrap_or_else(|| Err(Flaw::Missing(name.to_owned()))) {
        Ok((Given { pair, ca, application }, flaw)) => Offer {
            wish: Some(Wish { roots: Roots::given(ca), pair: Some(pair.clone()) }),
            pairs: Pairs::Same(Box::new(pair)),
            application,
            flaw,
            is_given: true,
        },
        Err(flaw) => Offer::kept(Some(flaw), true),
    }
}
