use crate::closed_set;

closed_set! {
    /// How much of an applied edit was in its file at the end of the Session. It is the result of
    /// one check of one file: it does not tell who changed the rest, why, or what happened later.
    pub enum Fate {
        /// At most a tenth of the text was left, or the file was gone.
        Deleted = "deleted",
        /// More than a tenth of the text was left, but less than nine tenths.
        PartiallyModified = "partially_modified",
        /// At least nine tenths of the text were left.
        Unmodified = "unmodified",
    }
}
