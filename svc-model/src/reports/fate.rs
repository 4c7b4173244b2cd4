use crate::closed_set;

closed_set! {
    /// How much of an applied edit was in its file at the end of the Session. It is one check of
    /// one file: it does not tell who changed the rest, or why.
    pub enum Fate {
        /// At most a tenth was left, or the file was gone.
        Deleted = "deleted",
        /// Anything in between.
        PartiallyModified = "partially_modified",
        /// At least nine tenths were left.
        Unmodified = "unmodified",
    }
}
