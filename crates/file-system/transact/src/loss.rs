//! By what an attempt of a transaction has lost, as far as a claim would have kept others away from it.

use posix_calls::InodeNumber;

use sync::mutant::planted;

use crate::question::{About, AboutData, Question};

/// By what an attempt has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// That is not known.
    Unknown,
    /// Somebody has changed this object.
    Object(InodeNumber),
    /// By an offset or a descriptor of its process: whoever changes these heeds no claim.
    Unclaimed,
}

impl Loss {
    pub(crate) fn of(question: &Question) -> Loss {
        let is_of_process = matches!(
            question.about,
            About::Data(
                AboutData::Offset(_)
                    | AboutData::Reaches(..)
                    | AboutData::Status(_)
                    | AboutData::Descriptor(_)
                    | AboutData::MayServe(..)
            )
        );
        let is_unclaimed = is_of_process && !planted("transact: who loses by an offset claims an object");
        if is_unclaimed { Loss::Unclaimed } else { Loss::Object(question.subject) }
    }
}
