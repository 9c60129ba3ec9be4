// Whole numbers in paths, queries and tokens: digits only, as text, since Number('1e3') and Number(' 1') are numbers too.

export const MAX_ID = 2147483647;

/** A test for `1..=max` written without sign, point, exponent or leading zero. */
export const wholeNumber = (max) => (text) => /^[1-9][0-9]{0,9}$/.test(text) && Number(text) <= max;

export const isId = wholeNumber(MAX_ID);
