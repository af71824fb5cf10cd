/**
 * The formats of what processes share: records in Redis, notes in the outbox, messages. A build writes the format that the
 * installation is at, and reads those from `oldest` to `newest`, so that neighbouring versions run side by side
 * (docs/internals.md). A change that the build before can't read is a new format.
 */
export interface Formats {
  readonly oldest: number;
  readonly newest: number;
}

/** Of this build. Each cell says in its field `format` what it may hold; absent: 1. */
export const FORMATS: Formats = { oldest: 1, newest: 1 };

/** A build that reads some formats met data of another one. Its message says what to do. */
export class FormatError extends Error {}

/** @param written format of an installation. @throws FormatError where a build does not read it */
export function assertReads({ oldest, newest }: Formats, written: number): void {
  if (written > newest)
    throw new FormatError(
      `This version reads data up to format ${newest}, and these are in format ${written} since an upgrade was finished: start the newer version`,
    );
  if (written < oldest)
    throw new FormatError(
      `This version reads data from format ${oldest} on, and these are in format ${written}: start the version before it and run «spindle upgrade finish»`,
    );
}
