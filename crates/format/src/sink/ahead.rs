//! Making bytes while others are written.

use crate::Error;
use crate::model::Produce;
use std::sync::mpsc;

/// Blocks that are made ahead, and how large these are: together they bound the memory.
const AHEAD: usize = 8;
const BLOCK: usize = 1 << 20;

/// Makes bytes on another thread, a few blocks ahead of those that are written.
pub(super) fn produce_ahead(
    from: &dyn Produce,
    put: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let (ready, blocks) = mpsc::sync_channel::<Vec<u8>>(AHEAD);
        // Blocks that were written are filled again: the system takes its time for new memory.
        let (done, empty) = mpsc::channel::<Vec<u8>>();
        let producer = scope.spawn(move || {
            // Nobody takes them any more when writing failed, which is said below.
            let send = |block| ready.send(block).map_err(|_| Error::Cancelled);
            let mut block = Vec::with_capacity(BLOCK);
            from.produce(&mut |mut bytes| {
                // Whole blocks, however small the parts are that come: others wait for them less often.
                while let Some((now, later)) = bytes.split_at_checked(BLOCK - block.len()) {
                    block.extend_from_slice(now);
                    let next = empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BLOCK));
                    send(std::mem::replace(&mut block, next))?;
                    bytes = later;
                }
                block.extend_from_slice(bytes);
                Ok(())
            })?;
            send(block)
        });
        let written = blocks.into_iter().try_for_each(|mut block| {
            put(&block)?;
            block.clear();
            // Nobody fills it any more when all is made.
            let _ = done.send(block);
            Ok(())
        });
        let produced = producer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        written.and(produced)
    })
}
