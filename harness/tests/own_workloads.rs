//! What users bring: a workload of a shape that is there takes two files; a schema that is not ours takes no Rust either.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::SystemTime;

use postgres::{Client, NoTls};
use support::TestDatabase;
use support::campaigns::{lanebench, said};
use support::servers::{Shop, root, servers};

/// When each of the servers' programs was built.
fn builds() -> Vec<SystemTime> {
    let built = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    servers()
        .iter()
        .flat_map(|server| server.programs().map(built))
        .collect()
}

fn verify(database: &TestDatabase, folders: [&Path; 2], arguments: &str) -> Output {
    let arguments = format!("verify -s deadpool,sqlx,r2d2 --pool 4 {arguments}");
    let mut command = lanebench(&database.url, &arguments);
    command.args([
        Path::new("--workloads"),
        folders[0],
        Path::new("--sql"),
        folders[1],
    ]);
    command.output().unwrap()
}

#[track_caller]
fn all_ok(output: &Output, workload: &str) {
    let said = said(output);
    assert!(output.status.success(), "{said}");
    let rows = said
        .lines()
        .filter(|line| line.contains(workload) && line.ends_with(" ok"));
    assert_eq!(rows.count(), 6, "three servers in two profiles: {said}");
}

#[test]
fn a_workload_of_a_known_shape_takes_two_files_and_no_server_is_built_again() {
    let _turn = support::turn();
    let before = builds();
    let shop = Shop::open();
    fs::write(
        shop.folder.path().join("dear-item.toml"),
        "about = \"An item, if it is dear.\"\nshape = \"item\"\nsql = \"dear-item.sql\"\n\
         [params]\nid = { uniform = { from = 1, to = 900 } }\n[expect]\nstatements = 1\ntransactions = 1\n",
    )
    .unwrap();
    fs::write(
        shop.folder.path().join("dear-item.sql"),
        "SELECT id, owner_id, upper(title) AS title, description, price_cents, stock FROM shop.items WHERE id = $1;\n",
    )
    .unwrap();
    let folder = shop.folder.path();
    let output = verify(
        &shop.database,
        [folder, folder],
        "--scale 0.01 -w dear-item",
    );
    all_ok(&output, "dear-item");
    assert_eq!(before, builds(), "no program is another one now");
}

#[test]
fn a_schema_of_ones_own_takes_two_files_and_no_rust() {
    let _turn = support::turn();
    servers();
    let database = TestDatabase::fresh();
    let example = root().join("examples/library");
    let mut client = Client::connect(&database.url, NoTls).unwrap();
    client
        .batch_execute(&fs::read_to_string(example.join("schema.sql")).unwrap())
        .unwrap();
    drop(client);
    let folders = [example.join("workloads"), example.join("sql")];
    let output = verify(&database, [&folders[0], &folders[1]], "--no-shop");
    all_ok(&output, "due-loans");
    let mut client = Client::connect(&database.url, NoTls).unwrap();
    let shop = client.query_one("SELECT to_regnamespace('shop') IS NULL", &[]);
    assert!(shop.unwrap().get::<_, bool>(0), "nothing was seeded");
}

#[test]
fn rows_of_ones_own_are_not_written_to() {
    let database = TestDatabase::fresh();
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("touch.toml"),
        "about = \"Writes.\"\nshape = \"table\"\nsql = \"touch.sql\"\nmethod = \"POST\"\n\
         [expect]\nstatements = 1\ntransactions = 1\n",
    )
    .unwrap();
    fs::write(
        folder.path().join("touch.sql"),
        "UPDATE mine SET n = n + 1 RETURNING n\n",
    )
    .unwrap();
    let output = verify(&database, [folder.path(), folder.path()], "--no-shop");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains(
            "workload `touch` writes, and with --no-shop nothing could put your rows back"
        ),
        "{}",
        said(&output)
    );
}

#[test]
fn the_readme_shows_the_files_of_the_example_as_they_are() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for file in ["workloads/due-loans.toml", "sql/due-loans.sql"] {
        let text = fs::read_to_string(root().join("examples/library").join(file)).unwrap();
        assert!(readme.contains(text.trim_end()), "{file}");
    }
}
