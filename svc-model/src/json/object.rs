//! Objects that keep the order of their members.

use std::fmt;
use std::hash::{BuildHasher as _, Hash, Hasher, RandomState};
use std::{mem, slice, vec};

use super::memory;
use super::text::Text;
use super::value::Json;

/// Up to this many members, a name is found by comparing it with each. Most objects stay far below
/// this.
const LINEAR_MAX: usize = 16;

/// A JSON object: its members in the order in which their names first appeared.
///
/// If a name is repeated, the last value counts, at the first position. Two objects are equal if
/// their members are, including their order.
#[derive(Clone, Default)]
pub struct Object {
    members: Vec<(Text, Json)>,
    /// Present only while there are more than [`LINEAR_MAX`] members.
    index: Option<Box<MemberIndex>>,
}

impl Object {
    /// Returns an object without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an object without members, with room for `capacity` of them.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            members: Vec::with_capacity(capacity),
            index: None,
        }
    }

    /// Returns the object of these members, some of which may have the same name. They are not
    /// copied.
    pub(super) fn from_members(mut members: Vec<(Text, Json)>) -> Self {
        let duplicate = |(position, (name, _)): (usize, &(Text, Json))| {
            members[..position]
                .iter()
                .any(|(earlier, _)| earlier == name)
        };
        if members.len() <= LINEAR_MAX && !members.iter().enumerate().any(duplicate) {
            return Self {
                members,
                index: None,
            };
        }
        let mut index = MemberIndex::empty(RandomState::new(), members.len());
        let mut kept = 0;
        for position in 0..members.len() {
            let name = members[position].0.as_bytes();
            if let Some(earlier) = index.position(name, &members[..kept]) {
                members[earlier].1 = mem::take(&mut members[position].1);
            } else {
                index.put(name, kept);
                members.swap(kept, position);
                kept += 1;
            }
        }
        members.truncate(kept);
        members.shrink_to_fit();
        let index = if index_slots(kept) == index.slots.len() {
            Some(Box::new(index))
        } else {
            MemberIndex::of(&members)
        };
        Self { members, index }
    }

    /// Returns the bytes of memory that the list of members and its index take, without what the
    /// members contain.
    pub(super) fn own_memory(&self) -> usize {
        let index = self.index.as_ref();
        memory::list::<(Text, Json)>(self.members.capacity())
            + index.map_or(0, |index| slots_bytes(index.slots.len()))
    }

    /// Returns the value of the member `name`.
    pub fn get(&self, name: &str) -> Option<&Json> {
        let position = self.position(name.as_bytes())?;
        Some(&self.members[position].1)
    }

    /// Returns the value of the member `name`, which can be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Json> {
        let position = self.position(name.as_bytes())?;
        Some(&mut self.members[position].1)
    }

    /// Returns whether there is a member `name`.
    pub fn contains_key(&self, name: &str) -> bool {
        self.position(name.as_bytes()).is_some()
    }

    /// Sets the member `name`. If it had a value, that value is replaced in its place and returned.
    pub fn insert(&mut self, name: impl Into<Text>, value: impl Into<Json>) -> Option<Json> {
        let (name, value) = (name.into(), value.into());
        if let Some(position) = self.position(name.as_bytes()) {
            return Some(mem::replace(&mut self.members[position].1, value));
        }
        self.members.push((name, value));
        match &mut self.index {
            Some(index) => index.add_last(&self.members),
            None => self.index = MemberIndex::of(&self.members),
        }
        None
    }

    /// Removes the member `name` and returns its value. The others keep their order. Takes time in
    /// proportion to the number of members.
    pub fn remove(&mut self, name: &str) -> Option<Json> {
        let position = self.position(name.as_bytes())?;
        let (_, value) = self.members.remove(position);
        self.index = MemberIndex::of(&self.members);
        Some(value)
    }

    /// Keeps the members for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&Text, &mut Json) -> bool) {
        self.members.retain_mut(|(name, value)| keep(name, value));
        self.index = MemberIndex::of(&self.members);
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns the members, in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter(self.members.iter())
    }

    /// Returns the members, in order, with values that can be changed.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&Text, &mut Json)> {
        self.members.iter_mut().map(|(name, value)| (&*name, value))
    }

    fn position(&self, name: &[u8]) -> Option<usize> {
        match &self.index {
            Some(index) => index.position(name, &self.members),
            None => self
                .members
                .iter()
                .position(|(known, _)| known.as_bytes() == name),
        }
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.members == other.members
    }
}

impl Eq for Object {}

impl Hash for Object {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.members.hash(state);
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl<N: Into<Text>, V: Into<Json>> FromIterator<(N, V)> for Object {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(members: I) -> Self {
        let mut object = Self::new();
        object.extend(members);
        object
    }
}

impl<N: Into<Text>, V: Into<Json>> Extend<(N, V)> for Object {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, members: I) {
        for (name, value) in members {
            self.insert(name, value);
        }
    }
}

impl IntoIterator for Object {
    type Item = (Text, Json);
    type IntoIter = vec::IntoIter<(Text, Json)>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

impl<'a> IntoIterator for &'a Object {
    type Item = (&'a Text, &'a Json);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// The members of an object, in order.
#[derive(Clone, Debug)]
pub struct Iter<'a>(slice::Iter<'a, (Text, Json)>);

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Text, &'a Json);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, value)| (name, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(name, value)| (name, value))
    }
}

impl ExactSizeIterator for Iter<'_> {}

/// Finds the members of a large object by name: a hash table of their positions, with open
/// addressing.
///
/// The hash function is keyed at random, because names come from outside. The table is at most half
/// full.
#[derive(Clone)]
struct MemberIndex {
    hasher: RandomState,
    /// As many slots as a power of two; each is [`EMPTY`] or a position in the list of members.
    slots: Box<[u32]>,
}

const EMPTY: u32 = u32::MAX;

/// Returns the number of slots of the index of an object with this many members; 0 if it has no
/// index.
fn index_slots(members: usize) -> usize {
    if members <= LINEAR_MAX {
        return 0;
    }
    let slots = members.checked_mul(2);
    slots
        .and_then(usize::checked_next_power_of_two)
        .unwrap_or(usize::MAX)
}

/// Returns the bytes of memory that the index of an object with this many members takes.
pub(super) fn index_bytes(members: usize) -> usize {
    slots_bytes(index_slots(members))
}

fn slots_bytes(slots: usize) -> usize {
    if slots == 0 {
        return 0;
    }
    memory::list::<MemberIndex>(1).saturating_add(memory::list::<u32>(slots))
}

impl MemberIndex {
    /// Returns an index, if there are enough members for one.
    fn of(members: &[(Text, Json)]) -> Option<Box<Self>> {
        (members.len() > LINEAR_MAX).then(|| Box::new(Self::build(RandomState::new(), members)))
    }

    fn build(hasher: RandomState, members: &[(Text, Json)]) -> Self {
        let mut index = Self::empty(hasher, members.len());
        for (position, (name, _)) in members.iter().enumerate() {
            index.put(name.as_bytes(), position);
        }
        index
    }

    /// Returns an empty index with room for this many members.
    fn empty(hasher: RandomState, members: usize) -> Self {
        Self {
            hasher,
            slots: vec![EMPTY; (members * 2).next_power_of_two()].into(),
        }
    }

    fn position(&self, name: &[u8], members: &[(Text, Json)]) -> Option<usize> {
        self.probe(name)
            .map_while(|slot| (self.slots[slot] != EMPTY).then_some(self.slots[slot] as usize))
            .find(|&position| members[position].0.as_bytes() == name)
    }

    /// Adds the last of `members`, whose name is new.
    fn add_last(&mut self, members: &[(Text, Json)]) {
        if members.len() * 2 > self.slots.len() {
            *self = Self::build(self.hasher.clone(), members);
        } else if let Some((name, _)) = members.last() {
            self.put(name.as_bytes(), members.len() - 1);
        }
    }

    fn put(&mut self, name: &[u8], position: usize) {
        let free = self.probe(name).find(|&slot| self.slots[slot] == EMPTY);
        let free = free.expect("the index is at most half full");
        self.slots[free] = u32::try_from(position).expect("an object has fewer than 2^32 members");
    }

    /// Returns the slots in which `name` may be, the most likely first.
    fn probe(&self, name: &[u8]) -> impl Iterator<Item = usize> + use<> {
        let mask = self.slots.len() - 1;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the low bits are what is wanted"
        )]
        let start = self.hasher.hash_one(name) as usize;
        (0..=mask).map(move |step| start.wrapping_add(step) & mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(object: &Object) -> Vec<&str> {
        object
            .iter()
            .filter_map(|(name, _)| name.as_str())
            .collect()
    }

    #[test]
    fn the_last_value_wins_at_the_first_position() {
        let mut object = Object::new();
        assert_eq!(object.insert("a", 1), None);
        assert_eq!(object.insert("b", 2), None);
        assert_eq!(object.insert("a", 3), Some(1.into()));
        assert_eq!(names(&object), ["a", "b"]);
        assert_eq!(object.get("a"), Some(&3.into()));
        let collected: Object = [("a", 1), ("b", 2), ("a", 3)].into_iter().collect();
        assert_eq!(object, collected);
        let pairs = [("a", 1), ("b", 2), ("a", 3)].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(object, Object::from_members(pairs.into()));
    }

    #[test]
    fn small_and_large_objects_behave_alike() {
        for size in [0, 1, LINEAR_MAX - 1, LINEAR_MAX, LINEAR_MAX + 1, 1000] {
            let mut object: Object = (0..size)
                .map(|n| (format!("member {n}"), n.to_string()))
                .collect();
            assert_eq!((object.len(), object.is_empty()), (size, size == 0));
            assert_eq!(object.index.is_some(), size > LINEAR_MAX);
            for n in 0..size {
                let name = format!("member {n}");
                assert_eq!(
                    object.get(&name).and_then(Json::as_str),
                    Some(&*n.to_string())
                );
                assert!(object.contains_key(&name));
                *object.get_mut(&name).unwrap() = true.into();
                assert_eq!(object.insert(name, n.to_string()), Some(true.into()));
            }
            assert_eq!(object.get("member"), None);
            assert_eq!(object.remove("member"), None);
            if size > 1 {
                assert_eq!(object.remove("member 0"), Some("0".into()));
                assert_eq!(object.len(), size - 1);
                assert_eq!(object.get("member 0"), None);
                assert_eq!(object.get("member 1"), Some(&"1".into()));
                object.retain(|name, _| *name != "member 1");
                assert_eq!(object.get("member 1"), None);
                assert_eq!(object.insert("member 0", Json::Null), None);
                assert_eq!(names(&object).last(), Some(&"member 0"));
            }
        }
    }

    #[test]
    fn equality_depends_on_the_order_and_not_on_the_history() {
        let forward: Object = [("a", 1), ("b", 2)].into_iter().collect();
        let backward: Object = [("b", 2), ("a", 1)].into_iter().collect();
        assert_ne!(forward, backward);
        let mut rebuilt = backward.clone();
        let first = rebuilt.remove("b").unwrap();
        rebuilt.insert("b", first);
        assert_eq!(forward, rebuilt);
        assert_eq!(
            format!("{forward:?}"),
            r#"{"a": Number(1), "b": Number(2)}"#
        );
    }

    #[test]
    fn values_change_in_place() {
        let mut object: Object = [("a", 1), ("b", 2)].into_iter().collect();
        for (name, value) in object.iter_mut() {
            *value = name.clone().into();
        }
        let members: Vec<_> = object.into_iter().collect();
        assert_eq!(
            members,
            [("a".into(), "a".into()), ("b".into(), "b".into())]
        );
    }
}
