/**
 * Formats of the data that processes share: records in Redis, notes in the outbox, messages. A build writes
 * the format of the installation, and reads the formats from `oldest` to `newest`, so that neighbouring
 * versions run side by side (docs/internals.md). A change that the previous build can't read needs a new
 * format.
 */
export interface Formats {
  readonly oldest: number;
  readonly newest: number;
}

/**
 * Formats that this build can read and write. Each cell has a field `format` with the format of its data; if
 * it is absent, the format is 1.
 */
export const FORMATS: Formats = { oldest: 1, newest: 1 };

/** Thrown when a build meets data in a format that it can't read. The message says what to do. */
export class FormatError extends Error {}

export function assertReads({ oldest, newest }: Formats, written: number): void {
  if (written > newest)
    throw new FormatError(
      `This version reads data up to format ${newest}, but an upgrade was finished and the data has format ${written}. Start the newer version.`,
    );
  if (written < oldest)
    throw new FormatError(
      `This version reads data from format ${oldest} on, but the data has format ${written}. Start the previous version and run «spindle upgrade finish».`,
    );
}
