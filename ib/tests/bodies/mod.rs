//! The bodies of the fuzz targets for datagrams of InfiniBand: what must hold of any bytes.
#![allow(unreachable_pub, reason = "the fuzz targets are another crate")]

use mapper_ib::mad::AgentMad;
use mapper_ib::mad::sa::{InformInfo, McMemberRecord, MultiPathRecord, PathRecord, SaMad, ServiceRecord};

/// Whatever is read is read alike after it was written again.
pub fn administration(bytes: &[u8]) {
    if let Ok(mad) = SaMad::parse(bytes) {
        if let Some(paths) = MultiPathRecord::parse(&mad.data) {
            assert_eq!(MultiPathRecord::parse(&paths.emit()), Some(paths));
        }
        assert_eq!(SaMad::parse(&mad.emit()), Ok(mad));
    }
    let path = PathRecord::parse(bytes);
    assert_eq!(PathRecord::parse(&path.emit()), path);
    let member = McMemberRecord::parse(bytes);
    assert_eq!(McMemberRecord::parse(&member.emit()), member);
    let wanted = InformInfo::parse(bytes);
    assert_eq!(InformInfo::parse(&wanted.emit()), wanted);
    let service = ServiceRecord::parse(bytes);
    assert_eq!(ServiceRecord::parse(&service.emit()), service);
}

/// The same holds of what agents tell each other.
pub fn agents(bytes: &[u8]) {
    if let Ok(mad) = AgentMad::parse(bytes) {
        assert_eq!(AgentMad::parse(&mad.emit()), Ok(mad));
    }
}
