//! The texts of an edit, in the columns `applied_text` and `observed_file_text`.
//!
//! A file mostly holds the applied text. Then the second column holds only the text around it and
//! its position. So nothing is stored twice, and neither text has to be read to know that the file
//! holds all of the applied one.

use memchr::memmem;
use svc_engine_fact::EditTexts;
use svc_model::json::Text;

use super::column::{Column, ColumnForm as _, Columns, Document as _, PackedColumn};
use super::number;
use super::packing::{NO_CELL, cell, of_cell};
use crate::sql::error::StoreError;
use crate::sql::value::Value;

/// What the file of an edit held of the applied text.
#[derive(Clone, Debug, PartialEq)]
pub enum HeldText {
    /// All of it, in one piece.
    Whole,
    /// What a comparison of these texts shows.
    Texts(EditTexts),
}

/// What the file's column holds.
enum FileColumn {
    /// The text of the file.
    Own(Text),
    /// The text around the applied one, and after how many of its bytes the applied text stands.
    Around(String, usize),
}

impl FileColumn {
    /// Returns the file's column for these texts.
    fn column(texts: &EditTexts) -> Vec<u8> {
        let own = || cell(texts.observed_file.document());
        // A lone surrogate may be half of a pair, and half of a pair is no text.
        let (Some(applied), Some(file)) = (texts.applied.as_str(), texts.observed_file.as_str())
        else {
            return own();
        };
        let Some(place) = memmem::find(file.as_bytes(), applied.as_bytes()) else {
            return own();
        };
        let around = [&file[..place], &file[place + applied.len()..]].concat();
        let mut bytes = Vec::new();
        number::write(NO_CELL, &mut bytes);
        number::write(place as u64, &mut bytes);
        bytes.extend(cell(Text::from(around).document()));
        bytes
    }

    /// Reads the column; nothing if its value cannot have been written.
    fn read(bytes: &[u8]) -> Result<Option<Self>, StoreError> {
        let Some(mut rest) = behind_mark(bytes) else {
            return Ok(Text::of_document(&of_cell(bytes)?).map(Self::Own));
        };
        let place = number::read(&mut rest).and_then(|place| usize::try_from(place).ok());
        let text = Text::of_document(&of_cell(rest)?).and_then(|text| text.into_string().ok());
        Ok(place
            .zip(text)
            .map(|(place, text)| Self::Around(text, place)))
    }

    /// Returns the text of the file; nothing if the applied text cannot stand at its position.
    fn text(self, applied: &Text) -> Option<Text> {
        match self {
            Self::Own(text) => Some(text),
            Self::Around(around, place) => {
                let (before, after) = around.split_at_checked(place)?;
                Some(Text::from([before, applied.as_str()?, after].concat()))
            }
        }
    }
}

/// Returns what follows the mark, if the column holds the text around the applied one.
fn behind_mark(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = bytes;
    (number::read(&mut rest) == Some(NO_CELL)).then_some(rest)
}

impl Column for EditTexts {
    const WIDTH: usize = 2;

    fn write(self, row: &mut Vec<Value<'static>>) {
        let observed = FileColumn::column(&self);
        PackedColumn::write(self.applied, row);
        row.push(Value::OwnBlob(observed));
    }

    fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        let applied = PackedColumn::read(columns)?;
        let observed_file = columns.bytes(|bytes| {
            let observed = FileColumn::read(bytes)?;
            Ok(observed.and_then(|observed| observed.text(&applied)))
        })?;
        Ok(Self {
            applied,
            observed_file,
        })
    }
}

impl HeldText {
    /// Reads the file's column, and then the applied text's if it is needed.
    pub(crate) fn read(columns: &mut Columns<'_>) -> Result<Self, StoreError> {
        let observed = columns.bytes(|bytes| match behind_mark(bytes) {
            Some(_) => Ok(Some(None)),
            None => Ok(Text::of_document(&of_cell(bytes)?).map(Some)),
        })?;
        Ok(match observed {
            None => Self::Whole,
            Some(observed_file) => Self::Texts(EditTexts {
                applied: PackedColumn::read(columns)?,
                observed_file,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(applied: &str, observed_file: &str) -> EditTexts {
        EditTexts {
            applied: Text::from(applied),
            observed_file: Text::from(observed_file),
        }
    }

    fn stored(texts: &EditTexts) -> Vec<u8> {
        FileColumn::column(texts)
    }

    fn read(bytes: &[u8], applied: &Text) -> Option<Text> {
        FileColumn::read(bytes).unwrap()?.text(applied)
    }

    proptest! {
        #[test]
        fn edit_texts_are_read_back(
            applied in "[ab\u{e9}\n]{0,6}", before in "[ab\u{e9}]{0,9}", after in "[ab\u{e9}]{0,9}", is_held: bool,
        ) {
            let file = if is_held { [&*before, &applied, &after].concat() } else { before + &after };
            let texts = texts(&applied, &file);
            let bytes = stored(&texts);
            prop_assert_eq!(behind_mark(&bytes).is_some(), file.contains(&applied));
            prop_assert_eq!(read(&bytes, &texts.applied).unwrap(), texts.observed_file);
        }
    }

    #[test]
    fn applied_text_inside_the_file_is_not_stored_twice() {
        let line = |number: u64| format!("let number_{number} = {};\n", number * 7919 % 1009);
        let applied: String = (0..100).map(line).collect();
        let around = ["fn before() {}\n", &applied, "fn after() {}\n"].concat();
        assert!(stored(&texts(&applied, &around)).len() < 60);
        assert!(stored(&texts(&applied, &applied)).len() < 10);
        assert!(stored(&texts(&(applied + "x"), &around)).len() > 400);
    }

    #[test]
    fn lone_surrogates_are_stored_as_they_are() {
        let text = |bytes: &[u8]| Text::from_wtf8(bytes.to_vec()).unwrap();
        let broken = EditTexts {
            applied: text(b"\xed\xa0\xbd"),
            observed_file: text(b"a\xed\xa0\xbdb"),
        };
        let bytes = stored(&broken);
        assert_eq!(behind_mark(&bytes), None);
        assert_eq!(read(&bytes, &broken.applied), Some(broken.observed_file));
    }

    #[test]
    fn malformed_edit_texts_are_rejected() {
        let whole = stored(&texts("b\u{e9}", "a\u{e9}b\u{e9}c"));
        assert_eq!(read(&whole, &Text::from("!")).unwrap(), "a\u{e9}!c");
        let mut within = whole.clone();
        within[2] = 2;
        assert_eq!(read(&within, &Text::from("!")), None, "within a character");
        within[2] = 9;
        assert_eq!(read(&within, &Text::from("!")), None, "beyond the end");
        let broken = Text::from_wtf8(b"\xed\xa0\xbd".to_vec()).unwrap();
        assert_eq!(read(&whole, &broken), None);
        assert!(FileColumn::read(&whole[..3]).is_err(), "cut off");
        assert!(FileColumn::read(&whole[..1]).is_err(), "half a mark");
    }
}
