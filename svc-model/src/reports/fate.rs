use crate::closed_set;

closed_set! {
    /// How much of an applied edit was in its file at the end of the Session. It is one look at one
    /// file: it says neither who changed the rest nor why.
    pub enum Fate {
        /// At most a tenth was there, or the file was gone.
        Deleted = "deleted",
        /// Something between.
        PartiallyModified = "partially_modified",
        /// At least nine tenths were there.
        Unmodified = "unmodified",
    }
}
