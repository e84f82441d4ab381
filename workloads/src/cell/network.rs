//! `inet` and `cidr`.

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Reader, decimal};

/// A `cidr` always shows its mask, an `inet` only if it is not a single host. Of malformed bytes None.
pub(super) fn write(bytes: &[u8], cidr: bool, out: &mut Vec<u8>) -> Option<()> {
    // Family, bits of the mask, whether it is a cidr, bytes of the address.
    let [_, bits, _, length] = Reader(bytes).array()?;
    let address = bytes.get(4..)?;
    if usize::from(length) != address.len() {
        return None;
    }
    if let Ok(address) = <[u8; 4]>::try_from(address) {
        let _ = write!(out, "{}", Ipv4Addr::from(address));
    } else {
        v6(Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?), out);
    }
    if cidr || usize::from(bits) != 8 * address.len() {
        out.push(b'/');
        decimal::unsigned(u64::from(bits), out);
    }
    Some(())
}

/// As the standard library, but PostgreSQL also shows ::1.2.3.4 as that.
fn v6(address: Ipv6Addr, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = match address.segments() {
        [0, 0, 0, 0, 0, 0, high, _] if high != 0 => {
            let [.., a, b, c, d] = address.octets();
            write!(out, "::{}", Ipv4Addr::new(a, b, c, d))
        }
        _ => write!(out, "{address}"),
    };
}
