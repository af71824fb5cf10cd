/** What log lines are made of. */

/** Hands on what it is called with at most once a second, with the number of calls that were left out in between. */
export function onceASecond(say: (fields: object, unsaid: number) => void): (fields: object) => void {
  let saidAt = Number.NEGATIVE_INFINITY;
  let unsaid = 0;
  return (fields) => {
    if (performance.now() - saidAt < 1000) {
      unsaid++;
      return;
    }
    say(fields, unsaid);
    saidAt = performance.now();
    unsaid = 0;
  };
}

/** A store's address without its password. */
export const withoutSecrets = (url: string): string => {
  try {
    const { protocol, host, pathname } = new URL(url);
    return `${protocol}//${host}${pathname}`;
  } catch {
    return 'the given URL';
  }
};

/** An error's message in one line. */
export const lineOf = (error: unknown): string => {
  if (error instanceof AggregateError && error.errors.length > 0) return lineOf(error.errors[0]);
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? 'unknown';
};
