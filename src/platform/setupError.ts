/**
 * An error that prevents Spindle from starting and that only its operator can fix. The message is a single
 * line that says how to fix it.
 */
export class SetupError extends Error {
  override readonly name = 'SetupError';

  constructor(message: string, options?: ErrorOptions) {
    super(message.replace(/\s+/g, ' ').trim(), options);
  }
}

/** Returns the first non-empty line of an error's message, for use in a one-line message. */
export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split('\n').find((line) => line.trim() !== '') ?? 'unknown reason';
}
