//! Takes the arguments of a call one by one.

use std::ops::RangeInclusive;

use rmcp::model::JsonObject;
use serde_json::Value;
use svc_model::field::FromField;
use svc_model::json::Json;
use svc_model::time::Instant;

use super::ToolCaller;
use crate::moment::moment;
use crate::refusal::ToolRefusal;

/// The arguments of a call that are left.
#[derive(Debug)]
pub(super) struct Arguments<'a> {
    members: JsonObject,
    caller: &'a ToolCaller,
}

impl<'a> Arguments<'a> {
    pub(super) const fn new(members: JsonObject, caller: &'a ToolCaller) -> Self {
        Self { members, caller }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// Takes an argument, which is read as on the routes.
    pub(super) fn take<T: FromField>(&mut self, name: &str) -> Result<Option<T>, ToolRefusal> {
        let Some(value) = self.members.remove(name) else {
            return Ok(None);
        };
        let value = json(value)?;
        let read = T::from_field(&value);
        read.map(Some)
            .map_err(|violation| wrong(name, violation.message()))
    }

    /// Takes an argument that the call must have.
    pub(super) fn require<T: FromField>(&mut self, name: &str) -> Result<T, ToolRefusal> {
        self.take(name)?
            .ok_or_else(|| wrong(name, "field required"))
    }

    /// Takes an argument that only operators may give.
    pub(super) fn take_of_operator<T: FromField>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, ToolRefusal> {
        if self.has(name) && !self.caller.is_operator() {
            return Err(wrong(name, "can be given only with an operator's token"));
        }
        self.take(name)
    }

    /// Takes a text.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, ToolRefusal> {
        match self.members.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong(name, "must be a string")),
        }
    }

    /// Takes a date, a time or an age.
    pub(super) fn moment(&mut self, name: &str) -> Result<Option<Instant>, ToolRefusal> {
        let read = self.text(name)?.map(|text| moment(&text, self.caller.now));
        read.transpose().map_err(|rule| wrong(name, rule))
    }

    /// Takes a whole number. Some agents write it as a string.
    pub(super) fn number(
        &mut self,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, ToolRefusal> {
        let Some(value) = self.members.remove(name) else {
            return Ok(None);
        };
        let number = match &value {
            Value::String(text) => text.trim().parse().ok(),
            value => value.as_u64(),
        };
        match number.filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None if *range.end() == u64::MAX => Err(wrong(name, "must be a whole number")),
            None => Err(wrong(
                name,
                &format!("must be from {} to {}", range.start(), range.end()),
            )),
        }
    }

    pub(super) const fn now(&self) -> Instant {
        self.caller.now
    }

    /// Returns the arguments that were not taken.
    pub(super) fn rest(self) -> JsonObject {
        self.members
    }
}

/// Returns the refusal of an argument.
pub(super) fn wrong(name: &str, rule: &str) -> ToolRefusal {
    ToolRefusal::invalid(format!("{name} {rule}"))
}

fn json(value: Value) -> Result<Json, ToolRefusal> {
    match value {
        Value::String(text) => Ok(text.into()),
        value => {
            Json::parse(value.to_string().as_bytes()).map_err(|_| ToolRefusal::invalid("not JSON"))
        }
    }
}
