//! The mutator's time over the period of collections and of reclamation (Sareen and Blackburn 2022, §5).
