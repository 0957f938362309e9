//! The pages about the API, compared with the API: kinds, defaults, versions, etcd releases, and
//! the errors of the white paper's example.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use quorate::api::convert::{PRESERVED_FIELDS_ANNOTATION, convert};
use quorate::api::etcd_version::path::path;
use quorate::api::etcd_version::policy::{SUPPORTED_MINORS, Support, classify};
use quorate::api::etcd_version::{Release, join_releases};
use quorate::api::field::FromJson;
use quorate::api::kinds::{self, Kind};
use quorate::api::validation::features::FeatureSet;
use quorate::api::validation::{ValidationContext, ValidationResult, validate};
use quorate::api::{crd, etcd_cluster, example_app, names};
use serde_json::Value;

use super::tables::{code, rows_below};
use super::{ROOT, page};

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

fn crds() -> Vec<Value> {
    crd::all().into_iter().map(|crd| serde_json::to_value(crd).unwrap()).collect()
}

/// The schema of `spec` or `status` of a kind in one version.
fn schema(kind: &str, version: &str, part: &str) -> Value {
    let crds = crds();
    let found = crds.iter().find(|crd| crd["spec"]["names"]["kind"] == kind).unwrap();
    let versions = found["spec"]["versions"].as_array().unwrap();
    let found = versions.iter().find(|entry| entry["name"] == version).unwrap();
    found["schema"]["openAPIV3Schema"]["properties"][part].clone()
}

/// Every leaf value of an object, by its dotted path.
fn leaves(value: &Value, at: &str, found: &mut BTreeMap<String, Value>) {
    match value.as_object() {
        None => {
            found.insert(at.to_owned(), value.clone());
        }
        Some(object) => {
            for (key, below) in object {
                let here = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                leaves(below, &here, found);
            }
        }
    }
}

fn at<'v>(object: &'v Value, dotted: &str) -> Option<&'v Value> {
    object.pointer(&format!("/{}", dotted.replace('.', "/")))
}

fn sample(file: &str) -> Value {
    yaml(&fs::read_to_string(Path::new(ROOT).join("deploy/samples").join(file)).unwrap())
}

fn to(kind: &Kind, version: &str, object: &Value) -> Value {
    convert(object.clone(), &format!("{}/{version}", kind.group)).unwrap()
}

fn validated(object: &Value, features: FeatureSet) -> ValidationResult {
    let kind = kinds::by_name(object["kind"].as_str().unwrap()).unwrap();
    let version = kind.version_of(object["apiVersion"].as_str().unwrap()).unwrap();
    let now = "2026-01-31T12:00:00Z".parse().unwrap();
    validate(
        kind,
        None,
        &to(kind, "v1", object),
        &ValidationContext { now, features, request_version: version.name },
    )
}

#[test]
fn table_of_kinds_matches_the_crds() {
    let texts = |list: &Value| -> Vec<String> {
        let list = list.as_array().into_iter().flatten();
        list.map(|value| value.as_str().unwrap().to_owned()).collect()
    };
    let expected: Vec<Vec<Vec<String>>> = crds()
        .iter()
        .map(|crd| {
            let spec = &crd["spec"];
            let versions = spec["versions"].as_array().unwrap();
            let name = |version: &&Value| version["name"].as_str().unwrap().to_owned();
            vec![
                vec![spec["names"]["kind"].as_str().unwrap().to_owned()],
                vec![spec["group"].as_str().unwrap().to_owned()],
                versions.iter().map(|version| name(&version)).collect(),
                versions
                    .iter()
                    .filter(|version| version["storage"] == true)
                    .map(|version| name(&version))
                    .collect(),
                texts(&spec["names"]["shortNames"]),
            ]
        })
        .collect();
    let rows = rows_below(&page("api.md"), "## Kinds");
    let listed: Vec<Vec<Vec<String>>> =
        rows.iter().map(|row| row.iter().take(5).map(|cell| code(cell)).collect()).collect();
    assert_eq!(listed, expected);
}

#[test]
fn tables_of_scale_and_names_match_the_crds() {
    for row in rows_below(&page("api.md"), "## Scale") {
        let kind = &code(&row[0])[0];
        let crds = crds();
        let found = crds.iter().find(|crd| crd["spec"]["names"]["kind"] == **kind).unwrap();
        let versions = found["spec"]["versions"].as_array().unwrap();
        for (version, cell) in versions.iter().zip(&row[1..]) {
            let there = version.pointer("/subresources/scale/specReplicasPath");
            let listed = code(cell).first().cloned().map(Value::from);
            assert_eq!(there, listed.as_ref(), "{kind} {}", version["name"]);
        }
    }
    let rows = rows_below(&page("api.md"), "## Names");
    let listed: Vec<String> = rows.iter().map(|row| format!("{} {}", row[0], row[1])).collect();
    let expected = [
        format!("`EtcdCluster` {} characters", names::MAX_CLUSTER_NAME_LENGTH),
        format!("`ExampleApp` {} characters", names::MAX_APP_NAME_LENGTH),
        format!("`EtcdMember` {} characters", names::MAX_MEMBER_NAME_LENGTH),
    ];
    assert_eq!(listed, expected);
}

/// The fields that the defaults of a kind add.
fn added(kind: &str, given: &Value) -> BTreeMap<String, Value> {
    let filled = match kind {
        "EtcdCluster" => {
            let mut spec = etcd_cluster::v1::EtcdClusterSpec::read(given).unwrap();
            etcd_cluster::defaults::apply_defaults(&mut spec, None);
            serde_json::to_value(spec).unwrap()
        }
        "ExampleApp" => {
            let mut spec = example_app::v1::ExampleAppSpec::read(given).unwrap();
            example_app::defaults::apply_defaults(&mut spec, None);
            serde_json::to_value(spec).unwrap()
        }
        other => panic!("{other} has no defaults"),
    };
    let (mut all, mut set) = (BTreeMap::new(), BTreeMap::new());
    leaves(&filled, "", &mut all);
    leaves(given, "", &mut set);
    all.retain(|path, _| !set.contains_key(path));
    all
}

#[test]
fn tables_of_defaults_match_the_code() {
    for kind in ["EtcdCluster", "ExampleApp"] {
        let mut listed = BTreeSet::new();
        for row in rows_below(&page("api.md"), &format!("### Defaults of {kind}")) {
            let [field, default, given] = row.as_slice() else { panic!("{row:?}") };
            let field = &code(field)[0];
            let added =
                added(kind, &code(given).first().map_or(serde_json::json!({}), |text| yaml(text)));
            if given.is_empty() {
                listed.insert(field.clone());
            }
            let Some(default) = code(default).first().cloned() else {
                let there = added.keys().any(|path| path.starts_with(field.as_str()));
                assert!(!there, "{kind}: {row:?}: has a default");
                continue;
            };
            let value =
                added.get(field).unwrap_or_else(|| panic!("{kind}: {field} has no default"));
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            // The page names the registry of the image in prose.
            let is_path = value.ends_with(&format!("/{default}")) && field == "image.repository";
            assert!(value == default || is_path, "{kind}: {field} defaults to {value}");
        }
        let all: BTreeSet<String> = added(kind, &serde_json::json!({})).into_keys().collect();
        assert_eq!(listed, all, "{kind}: left: docs/api.md, right: the code");
    }
}

#[test]
fn error_messages_on_the_page_are_those_of_validation() {
    let cluster = |spec: &str| {
        yaml(&format!(
            "{{apiVersion: {}/v1, kind: EtcdCluster, metadata: {{name: a}}, spec: {spec}}}",
            names::ETCD_GROUP
        ))
    };
    let wrong = "{replicas: 9, version: 3.6, deletionPolicy: Retian, backup: {schedule: '61 * * * *', \
                 destination: {s3: {bucket: my-backups}}}}";
    let errors = validated(&cluster(wrong), FeatureSet::ALL).violations;
    assert_eq!(errors.len(), 4);
    let page = page("api.md");
    for violation in errors {
        assert!(page.contains(&format!("    {violation}\n")), "docs/api.md lacks: {violation}");
    }
}

/// The field paths of a schema, down to values without properties.
fn field_paths(schema: &Value, at: &str, found: &mut Vec<String>) {
    match schema.get("properties").and_then(Value::as_object) {
        None => found.push(at.to_owned()),
        Some(fields) => {
            for (name, below) in fields {
                let here = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                field_paths(below, &here, found);
            }
        }
    }
}

/// Whether a path equals another one or is below it.
fn within(path: &str, block: &str) -> bool {
    path.strip_prefix(block).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[test]
fn tables_of_versions_have_every_field() {
    let page = page("versions.md");
    for kind in ["EtcdCluster", "ExampleApp"] {
        let parts =
            [("spec", format!("## {kind}")), ("status", format!("### The status of {kind}"))];
        for (part, heading) in parts {
            let rows = rows_below(&page, &heading);
            let rows: Vec<_> = rows.iter().take_while(|row| code(&row[0]) != ["s3"]).collect();
            for (column, version) in ["v1", "v1beta1", "v1alpha1"].iter().enumerate() {
                let listed: Vec<String> = rows.iter().flat_map(|row| code(&row[column])).collect();
                let mut there = Vec::new();
                field_paths(&schema(kind, version, part), "", &mut there);
                let missing: Vec<&String> = there
                    .iter()
                    .filter(|field| !listed.iter().any(|row| within(field, row)))
                    .collect();
                assert!(
                    missing.is_empty(),
                    "{kind} {version} {part}: not in the table: {missing:?}"
                );
            }
        }
    }
}

/// All samples.
fn samples() -> Vec<Value> {
    let entries = |path: &Path| -> Vec<PathBuf> {
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let folders = entries(&Path::new(ROOT).join("deploy/samples"));
    let folders = folders.iter().filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| entries(folder));
    files.map(|file| yaml(&fs::read_to_string(file).unwrap())).collect()
}

#[test]
fn fields_are_converted_as_the_tables_state() {
    let page = page("versions.md");
    let samples = samples();
    for kind in [&kinds::ETCD_CLUSTER, &kinds::EXAMPLE_APP] {
        let api_version = format!("{}/v1", kind.group);
        let mine = samples.iter().filter(|sample| sample["kind"] == kind.name);
        let mine: Vec<&Value> = mine.filter(|sample| sample["apiVersion"] == api_version).collect();
        for row in rows_below(&page, &format!("## {}", kind.name)) {
            let path = &code(&row[0])[0];
            let with = mine.iter().filter(|sample| at(&sample["spec"], path).is_some());
            let with: Vec<&&Value> = with.collect();
            // The second table of ExampleApp is about the values of one field.
            if with.is_empty() && ["s3", "gcs", "azure", "volume"].contains(&path.as_str()) {
                continue;
            }
            assert!(!with.is_empty(), "{}: no sample has {path}", kind.name);
            for (column, version) in [(1, "v1beta1"), (2, "v1alpha1")] {
                let Some(there) = code(&row[column]).first().cloned() else { continue };
                for object in &with {
                    let converted = to(kind, version, object);
                    let found = at(&converted["spec"], &there);
                    assert!(
                        found.is_some(),
                        "{}: {path} is not at {there}: {converted}",
                        kind.name
                    );
                }
            }
            let preserved = row.iter().skip(1).zip(["v1beta1", "v1alpha1"]);
            for (_, version) in preserved.filter(|(cell, _)| *cell == "preserved") {
                for object in &with {
                    let converted = to(kind, version, object);
                    let text = converted["metadata"]["annotations"][PRESERVED_FIELDS_ANNOTATION]
                        .as_str()
                        .unwrap();
                    let inside = format!("\"/spec/{}", path.replace('.', "/"));
                    let around =
                        parents_of(path).any(|parent| text.contains(&format!("\"{parent}\"")));
                    let preserved = text.contains(&inside) || around;
                    assert!(
                        preserved,
                        "{}: {path} is not preserved in {version}: {text}",
                        kind.name
                    );
                }
            }
        }
    }
}

/// A path and its parents, as JSON pointers.
fn parents_of(path: &str) -> impl Iterator<Item = String> {
    let whole = format!("/spec/{}", path.replace('.', "/"));
    let around = |pointer: &String| pointer.rsplit_once('/').map(|(block, _)| block.to_owned());
    std::iter::successors(Some(whole), around).take_while(|pointer| pointer != "/spec")
}

#[test]
fn statements_about_preserved_fields_hold() {
    let page = page("versions.md");
    assert!(page.contains(&format!("\n    {PRESERVED_FIELDS_ANNOTATION}\n")));
    let alpha = to(&kinds::ETCD_CLUSTER, "v1alpha1", &sample("day2/disconnect.yaml"));
    let preserved = alpha["metadata"]["annotations"][PRESERVED_FIELDS_ANNOTATION].as_str().unwrap();
    assert!(page.contains(&format!("\n    {preserved}\n")), "docs/versions.md lacks {preserved}");
    let mut beta = to(&kinds::EXAMPLE_APP, "v1beta1", &sample("not-yet/exampleapp-full.yaml"));
    beta["spec"]["features"] = serde_json::json!(["exampleFeature1", "exampleFeature2"]);
    let edited = &to(&kinds::EXAMPLE_APP, "v1", &beta)["spec"];
    assert_eq!(edited["features"]["exampleFeature2"], true, "an edit wins");
    let mut beta =
        to(&kinds::ETCD_CLUSTER, "v1beta1", &sample("not-yet/etcdcluster-backup-s3.yaml"));
    beta["spec"]["backupDestination"] = "s3://another-bucket".into();
    let s3 = &to(&kinds::ETCD_CLUSTER, "v1", &beta)["spec"]["backup"]["destination"]["s3"];
    assert_eq!(s3["bucket"], "another-bucket");
    assert_eq!(s3["credentialsSecretRef"]["name"], "my-backups", "another bucket of the same type");
    let mut alpha = to(&kinds::EXAMPLE_APP, "v1alpha1", &sample("not-yet/exampleapp-full.yaml"));
    alpha["spec"]["backup"]["storageType"] = "gcs".into();
    alpha["spec"]["backup"].as_object_mut().unwrap().remove("host");
    let backup = &to(&kinds::EXAMPLE_APP, "v1", &alpha)["spec"]["backup"];
    assert_eq!(backup["schedule"], "0 3 * * *", "unchanged fields are restored");
    let only = serde_json::json!({"gcs": {"bucket": "example-backup"}});
    assert_eq!(backup["destination"], only, "an object is restored as a whole or not at all");
}

fn release(cell: &str) -> Option<Release> {
    code(cell).first().map(|text| Release::parse(text).unwrap_or_else(|| panic!("{text}")))
}

#[test]
fn tables_of_etcd_releases_match_the_policy() {
    let page = page("etcd-versions.md");
    let lines: Vec<_> = rows_below(&page, "## Supported")
        .iter()
        .map(|row| (code(&row[0])[0].clone(), release(&row[1]), release(&row[2])))
        .collect();
    let expected: Vec<_> = SUPPORTED_MINORS
        .iter()
        .map(|line| (line.minor().to_string(), Some(line.newest), line.min_upgradable))
        .collect();
    assert_eq!(lines, expected);
    let reasons = |rows: &[Vec<String>], tested: Release| -> Vec<String> {
        let fits = |row: &&Vec<String>| {
            let (first, last) = (release(&row[0]).unwrap(), release(&row[1]));
            let ends = last.is_none_or(|last| tested <= last);
            first.minor() == tested.minor() && first <= tested && ends
        };
        rows.iter().filter(fits).map(|row| row[2].clone()).collect()
    };
    let (rejected, warned) =
        (rows_below(&page, "## Rejected"), rows_below(&page, "## Accepted with a warning"));
    for line in SUPPORTED_MINORS {
        for patch in 0..50 {
            let release = Release::new(line.newest.major, line.newest.minor, patch);
            let (mut no, mut but): (Vec<String>, Vec<String>) = match classify(release) {
                Support::Full => (Vec::new(), Vec::new()),
                Support::Rejected(reason) => (vec![reason.to_owned()], Vec::new()),
                Support::WithWarnings(all) => {
                    (Vec::new(), all.into_iter().map(str::to_owned).collect())
                }
                other @ (Support::EndOfLife | Support::Unknown) => {
                    panic!("{release}: {other:?}")
                }
            };
            let (mut listed_no, mut listed_but) =
                (reasons(&rejected, release), reasons(&warned, release));
            for list in [&mut no, &mut but, &mut listed_no, &mut listed_but] {
                list.sort();
            }
            assert_eq!((listed_no, listed_but), (no, but), "{release}: left: the page");
        }
    }
}

#[test]
fn upgrade_paths_on_the_page_are_those_of_the_code() {
    for row in rows_below(&page("etcd-versions.md"), "## Paths") {
        let (from, to) = (release(&row[0]).unwrap(), release(&row[1]).unwrap());
        let path =
            path(from, to).map_or_else(|error| error.to_string(), |steps| join_releases(&steps));
        assert_eq!(path, row[2], "{from} to {to}");
    }
}

/// The first indented lines below a heading, without the indent.
fn block_below(page: &str, heading: &str) -> String {
    let lines = page.lines().skip_while(|line| *line != heading);
    let block = lines.skip_while(|line| !line.starts_with("    "));
    let lines = block.map_while(|line| line.strip_prefix("    "));
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn white_paper_example_has_the_errors_of_its_page() {
    let page = page("white-paper.md");
    let printed = block_below(&page, "## As printed");
    let mut errors = validated(&yaml(&printed), FeatureSet::CURRENT).violations;
    assert_eq!(errors.len(), 4);
    let number = printed.replace("appVersion: 0.0.1", "appVersion: 1.0");
    errors.extend(validated(&yaml(&number), FeatureSet::ALL).violations);
    for violation in errors {
        assert!(page.contains(&format!("    {violation}\n")), "the page lacks: {violation}");
    }
    let corrected = sample("not-yet/exampleapp-v1alpha1.yaml");
    let accepted = validated(&corrected, FeatureSet::CURRENT);
    assert!(accepted.is_valid(), "{accepted:?}");
    assert!(
        accepted.warnings.iter().all(|warning| page.contains(&format!("    {warning}\n"))),
        "{accepted:?}"
    );
    let hub = yaml(&block_below(&page, "## The object in v1"));
    assert_eq!(to(&kinds::EXAMPLE_APP, "v1", &corrected)["spec"], hub["spec"]);
}

#[test]
fn diff_to_the_white_paper_results_in_the_sample() {
    let page = page("white-paper.md");
    let difference = block_below(&page, "## The corrected sample");
    let side = |mark: char| -> String {
        let lines = difference.lines().filter(|line| line.starts_with([' ', mark]));
        lines.flat_map(|line| [line.get(1..).unwrap(), "\n"]).collect()
    };
    assert_eq!(side('-'), block_below(&page, "## As printed"));
    assert_eq!(yaml(&side('+')), sample("not-yet/exampleapp-v1alpha1.yaml"));
}
