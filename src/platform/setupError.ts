/** What keeps Spindle from starting and only its operator can put right. The message is one line that says how. */
export class SetupError extends Error {
  override readonly name = 'SetupError';

  constructor(message: string, options?: ErrorOptions) {
    super(message.replace(/\s+/g, ' ').trim(), options);
  }
}

/** The first line of an error that says something, for use inside a one-line message. */
export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split('\n').find((line) => line.trim() !== '') ?? 'unknown reason';
}
