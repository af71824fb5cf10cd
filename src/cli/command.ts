/** What the commands have in common. */

/** The command was written wrongly: exit status 2. */
export class UsageError extends Error {}
/** There is no such thing: exit status 1. */
export class NotFoundError extends Error {}

export interface StoreUrls {
  readonly redisUrl: string;
  readonly databaseUrl: string;
}

export type Line = Record<string, string | number | boolean | null>;

export function whole(text: string | undefined, name: string): number {
  if (text === undefined || !/^\d{1,10}$/.test(text)) throw new UsageError(`${name} must be a whole number`);
  return Number(text);
}
