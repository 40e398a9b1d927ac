//! Boxes with their hosts folded into them: a cell for each host, below the xbar's name.

use mapper_proto::map::Fabric;

use super::Sizes;

/// Width and height of a host's cell.
pub(crate) const CELL: (i64, i64) = (16, 10);
/// How many cells stand side by side.
pub(crate) const CELLS_IN_LINE: usize = 6;
/// Height of the name above the cells.
pub(crate) const NAME_HEIGHT: i64 = 20;
/// Room around the cells.
pub(crate) const MARGIN: i64 = 4;
/// Most boxes of a row that stand in one line.
const MOST_IN_LINE: usize = 32;

impl Sizes {
    /// The sizes of boxes that show their hosts as cells.
    pub(crate) fn folded(fabric: &Fabric) -> Self {
        let mut hosts = vec![0_usize; fabric.map.xbars.len()];
        fabric.map.hosts.iter().filter_map(|host| host.at).for_each(|at| hosts[at.xbar as usize] += 1);
        let width = CELLS_IN_LINE as i64 * CELL.0 + 2 * MARGIN;
        let height = |hosts: usize| match hosts.div_ceil(CELLS_IN_LINE) as i64 {
            0 => NAME_HEIGHT,
            lines => NAME_HEIGHT + lines * CELL.1 + MARGIN,
        };
        let boxes = hosts.into_iter().map(|hosts| (width, height(hosts))).collect();
        Self { boxes, below: 0, most_in_line: MOST_IN_LINE }
    }
}
