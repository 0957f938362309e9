//! Objects to convert: the one of the white paper, and one of each newer version with every field.

use serde_json::{Value, json};

use crate::api::names;

fn object(version: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": format!("{}/{version}", names::APP_GROUP),
        "kind": "ExampleApp",
        "metadata": {"name": "appdelivery-example-app"},
        "spec": spec,
        "status": status,
    })
}

pub(super) fn spec(version: &str, spec: &Value) -> Value {
    object(version, spec, &json!({}))
}

pub(super) fn white_paper() -> Value {
    let spec = json!({
        "appVersion": "0.0.1",
        "features": {"exampleFeature1": true, "exampleFeature2": false},
        "backup": {
            "enabled": true,
            "storageType": "s3",
            "host": "my-backup.example.com",
            "bucketName": "example-backup",
        },
    });
    let status = json!({
        "currentVersion": "0.0.1",
        "url": "https://myloadbalancer/exampleapp/",
        "authSecretName": "appdelivery-example-app-auth",
        "backup": {"lastBackupTime": "12:00"},
    });
    object("v1alpha1", &spec, &status)
}

pub(super) fn everything_in_v1beta1() -> Value {
    let spec = json!({
        "version": "0.2.0",
        "replicas": 3,
        "features": ["zebra", "ant"],
        "schedule": "0 3 * * *",
        "destination": {
            "storageType": "azure", "host": "account1", "bucketName": "container", "prefix": "a/b",
        },
        "etcdCluster": "shared",
        "paused": true,
    });
    let status = json!({
        "observedGeneration": 4,
        "currentVersion": "0.1.0",
        "targetVersion": "0.2.0",
        "url": "https://app.example.com/",
        "authSecretName": "app-auth",
        "lastBackupTime": "2026-01-02T03:04:05Z",
        "replicas": 3,
        "readyReplicas": 2,
        "selector": "app=example",
        "conditions": [{"type": "Ready", "status": "True", "reason": "AllWell", "message": "Yes."}],
    });
    object("v1beta1", &spec, &status)
}

pub(super) fn everything_in_v1() -> Value {
    let spec = json!({
        "version": "0.2.0",
        "image": {
            "repository": "example.com/app",
            "pullPolicy": "Always",
            "pullSecrets": [{"name": "registry"}],
        },
        "replicas": 2,
        "autoscaling": {
            "minReplicas": 1, "maxReplicas": 5, "targetCPUUtilizationPercentage": 80,
        },
        "features": {"ant": true, "bee": false, "zebra": true},
        "data": {"etcd": {
            "clusterRef": {"name": "shared"},
            "managed": {
                "replicas": 3,
                "version": "3.6.16",
                "storage": {"size": "10Gi", "className": "fast"},
            },
        }},
        "exposure": {
            "serviceType": "LoadBalancer",
            "host": "app.example.com",
            "tls": {"secretRef": {"name": "certificate"}},
        },
        "backup": {
            "schedule": "0 3 * * *",
            "timeZone": "Europe/Berlin",
            "suspend": true,
            "destination": {"s3": {
                "bucket": "example-backup",
                "prefix": "a/b",
                "endpoint": "http://minio.example.com:9000/below",
                "region": "eu-central-1",
                "pathStyle": true,
                "credentialsSecretRef": {"name": "keys"},
                "caSecretRef": {"name": "authority"},
            }},
            "retention": {"keepLast": 3, "keepDays": 30},
        },
        "restore": {"from": {
            "location": "s3://bucket/name.db",
            "access": {"endpoint": "https://s3.example.com", "credentialsSecretRef": {"name": "k"}},
        }},
        "upgrade": {"snapshotFirst": true, "rollbackAfterFailedStarts": 3},
        "resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}},
        "paused": true,
        "deletionPolicy": "Disconnect",
    });
    object("v1", &spec, &everything_reported_in_v1())
}

fn everything_reported_in_v1() -> Value {
    json!({
        "observedGeneration": 4,
        "currentVersion": "0.1.0",
        "targetVersion": "0.2.0",
        "url": "https://app.example.com/",
        "authSecretName": "app-auth",
        "binding": {"name": "app-etcd"},
        "backup": {
            "lastBackupTime": "2026-01-02T03:04:05Z",
            "location": "s3://bucket/name.db",
            "version": "0.1.0",
            "lastError": "There was none.",
        },
        "replicas": 3,
        "readyReplicas": 2,
        "selector": "app=example",
        "progress": {
            "operation": "Upgrade", "step": "2/3", "percent": 50, "bytesDone": 5, "bytesTotal": 10,
            "message": "Half.",
        },
        "conditions": [{"type": "Ready", "status": "True", "reason": "AllWell", "message": "Yes."}],
    })
}
