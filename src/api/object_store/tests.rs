//! Valid and invalid endpoints, hosts, buckets and repositories.
use proptest::prelude::*;

use super::*;

fn assert_valid(check: fn(&str) -> Option<String>, texts: &[&str]) {
    for text in texts {
        assert_eq!(check(text), None, "{text}");
    }
}

fn assert_invalid(check: fn(&str) -> Option<String>, texts: &[(&str, &str)]) {
    for (text, expected) in texts {
        let error = check(text).unwrap_or_else(|| panic!("{text:?} was accepted"));
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn endpoint_is_a_scheme_a_host_and_an_optional_port() {
    assert_valid(
        endpoint_error,
        &[
            "https://s3.eu-central-1.amazonaws.com",
            "http://minio:9000",
            "https://minio.storage.svc.cluster.local:443",
            "http://10.0.0.1:9000",
            "http://[::1]:9000",
            "https://[2001:db8::1]",
            "https://MINIO.example.com:65535",
        ],
    );
}

#[test]
fn error_of_an_endpoint_states_the_correct_value() {
    assert_invalid(
        endpoint_error,
        &[
            ("", "must not be empty"),
            ("minio:9000", "write 'https://minio:9000', or 'http://minio:9000' without TLS"),
            ("s3://bucket", "not with 's3://'"),
            ("HTTPS://minio", "not with 'HTTPS://'"),
            ("https://minio:9000/", "write 'https://minio:9000'"),
            ("https://minio/bucket", "set the bucket in `bucket`"),
            ("https://minio?x=1", "write 'https://minio'"),
            ("https://minio#top", "write 'https://minio'"),
            ("https://key:secret@minio", "use a Secret"),
            ("https://", "must have a host"),
            ("https:///bucket", "must have a host"),
            ("https://:9000", "must have a host"),
            ("https://minio:", "port '' must be a number from 1 to 65535"),
            ("https://minio:0", "port '0' must be"),
            ("https://minio:65536", "port '65536' must be"),
            ("https://minio:+80", "port '+80' must be"),
            ("https://minio:90:90", "port '90:90' must be"),
            ("https://mi nio", "must not have spaces"),
            ("https://-minio", "host '-minio' must be letters"),
            ("https://minio.", "single dots"),
            ("https://a..b", "single dots"),
            ("https://my_minio", "host 'my_minio'"),
            ("https://10.0.0.300", "'10.0.0.300' is not an IPv4 address"),
            ("https://10.0.1", "is not an IPv4 address"),
            ("https://[::g]", "is not an IPv6 address"),
            ("https://[::1]9000", "'9000' must not follow"),
            ("https://::1", "write '[::1]'"),
            ("\u{201C}https://minio\u{201D}", "write 'https://minio' with plain ones"),
        ],
    );
}

#[test]
fn host_has_no_scheme_and_no_path() {
    assert_valid(
        host_error,
        &["my-backup.example.com", "my-backup.example.com:8443", "10.0.0.1", "a"],
    );
    assert_invalid(
        host_error,
        &[
            ("https://my-backup.example.com/x", "write 'my-backup.example.com' without 'https://'"),
            ("my-backup.example.com/x", "write 'my-backup.example.com'"),
            ("my\u{2013}backup.example.com", "write 'my-backup.example.com'"),
            ("a:b", "port 'b' must be"),
            (&format!("{}.com", "a".repeat(64)), "must be letters"),
            (&"a.".repeat(130).replace("a.a.a.", "abc."), "single dots"),
        ],
    );
}

#[test]
fn buckets_follow_the_rules_of_amazon() {
    let longest = "a".repeat(63);
    assert_valid(bucket_error, &["example-backup", "a.b-c.1", "123", "1.2.3", &longest]);
    assert_invalid(
        bucket_error,
        &[
            ("", "must not be empty"),
            ("ab", "must have 3 to 63 characters, and has 2"),
            (&"a".repeat(64), "and has 64"),
            ("My-Bucket", "write 'my-bucket'"),
            ("my_bucket", "'_' is not allowed"),
            ("b\u{FC}cher", "'\u{FC}' is not allowed"),
            ("-abc", "begin and end with"),
            ("abc-", "begin and end with"),
            (".abc", "begin and end with"),
            ("a..b", "two dots side by side"),
            ("192.168.5.4", "must not be an IP address"),
            ("xn--abc", "must not begin with 'xn--'"),
            ("sthree-abc", "must not begin with 'sthree-'"),
            ("abc-s3alias", "must not end with '-s3alias'"),
            ("abc--ol-s3", "must not end with '--ol-s3'"),
            ("s3://my-bucket/x", "write 'my-bucket'"),
            ("my-bucket/x", "set the rest in `prefix`"),
            ("my bucket", "must not have spaces"),
            ("my\u{2014}bucket", "write 'my-bucket'"),
        ],
    );
}

#[test]
fn repository_has_neither_a_tag_nor_a_digest() {
    assert_valid(
        repository_error,
        &[
            "etcd",
            "quay.io/coreos/etcd",
            "registry.k8s.io/etcd",
            "localhost:5000/etcd",
            "registry.example.com:443/a_b/c-d/e.f",
            "gcr.io/etcd-development/etcd",
        ],
    );
    assert_invalid(
        repository_error,
        &[
            ("", "must not be empty"),
            ("quay.io/coreos/etcd:v3.6.16", "the tag 'v3.6.16'"),
            ("quay.io/coreos/etcd:v3.6.16", "write 'quay.io/coreos/etcd'"),
            ("localhost:5000/etcd:latest", "write 'localhost:5000/etcd'"),
            ("etcd:latest", "write 'etcd'"),
            ("quay.io/coreos/etcd@sha256:0123", "must not contain a digest"),
            ("quay.io/coreos/etcd:v3@sha256:0123", "write 'quay.io/coreos/etcd'"),
            ("https://quay.io/coreos/etcd", "write 'quay.io/coreos/etcd'"),
            ("Quay.io/coreos/etcd", "write 'quay.io/coreos/etcd'"),
            ("quay.io//etcd", "'' must be lower case"),
            ("quay.io/coreos/", "'' must be lower case"),
            ("quay.io/-coreos/etcd", "'-coreos' must be"),
            ("quay.io:99999/etcd", "port '99999' must be"),
            ("quay.io/co reos", "must not have spaces"),
        ],
    );
}

proptest! {
    #[test]
    fn arbitrary_input_does_not_panic(text in "\\PC{0,60}") {
        for check in [endpoint_error, host_error, bucket_error, repository_error] {
            prop_assert_ne!(check(&text), Some(String::new()));
        }
    }

    #[test]
    fn valid_repository_matches_the_schema(text in "[a-z0-9.:/_@-]{1,30}") {
        let schema =
            "^[a-z0-9]([a-z0-9._-]*[a-z0-9])?(:[0-9]{1,5}/[a-z0-9._-]+)?(/[a-z0-9._-]+)*$";
        if repository_error(&text).is_none() {
            prop_assert!(regex::Regex::new(schema).unwrap().is_match(&text), "{}", text);
        }
    }
}
