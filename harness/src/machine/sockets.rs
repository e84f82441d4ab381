//! Which local TCP ports a process has in use: PostgreSQL knows a session by the port at its client's end.

use std::collections::BTreeSet;
use std::fs;

/// Local ports of the TCP sockets that these processes hold. Empty where they cannot be seen.
pub fn local_ports(pids: &[u32]) -> BTreeSet<u16> {
    let mut ports = BTreeSet::new();
    for &pid in pids {
        let inodes = socket_inodes(pid);
        for table in ["tcp", "tcp6"] {
            let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
            ports.extend(ports_of(&text, &inodes));
        }
    }
    ports
}

fn socket_inodes(pid: u32) -> BTreeSet<u64> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return BTreeSet::new();
    };
    let targets = entries
        .map_while(Result::ok)
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    let inodes = targets.filter_map(|target| {
        let inode = target.to_str()?.strip_prefix("socket:[")?;
        inode.strip_suffix(']')?.parse().ok()
    });
    inodes.collect()
}

/// Lines of `/proc/<pid>/net/tcp`: number, local address and port in hexadecimal, ..., the inode in the tenth column.
fn ports_of(table: &str, inodes: &BTreeSet<u64>) -> BTreeSet<u16> {
    let ports = table.lines().skip(1).filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (_, port) = words.nth(1)?.rsplit_once(':')?;
        let inode = words.nth(7)?.parse().ok()?;
        inodes
            .contains(&inode)
            .then(|| u16::from_str_radix(port, 16).ok())?
    });
    ports.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0000000000000000 100 0 0 10 0
   1: 0100007F:C350 0100007F:1538 01 00000000:00000000 02:000005DC 00000000     0        0 78 2 0000000000000000 20 4 30 10 -1
   2: 0100007F:C351 0100007F:1538 01 00000000:00000000 02:000005DC 00000000     0        0 99 2 0000000000000000 20 4 30 10 -1
";

    #[test]
    fn ports_are_those_of_the_sockets_that_a_process_holds() {
        assert_eq!(ports_of(TCP, &[77, 78].into()), [8080, 50_000].into());
        assert_eq!(ports_of(TCP, &BTreeSet::new()), BTreeSet::new());
        assert_eq!(
            ports_of("what is this\nnot a table", &[1].into()),
            BTreeSet::new()
        );
    }

    #[test]
    fn this_process_has_the_ports_that_it_opens() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(local_ports(&[std::process::id()]).contains(&port));
        drop(listener);
        assert!(!local_ports(&[std::process::id()]).contains(&port));
    }
}
