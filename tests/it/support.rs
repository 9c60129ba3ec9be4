//! What several areas of the tests share. Owned by the postgres area.
