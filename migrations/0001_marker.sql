-- Says that headroom made this database. First, so that an interrupted preparation is recognised as ours and finished.
-- One row: the format of what is seeded, and whether seeding came to its end.
CREATE TABLE headroom_marker (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    format   int     NOT NULL,
    seed     text    NOT NULL CHECK (seed IN ('unfinished', 'complete'))
);

INSERT INTO headroom_marker (format, seed) VALUES (1, 'unfinished');
