/** Answers as CSV: their type, and who wants them. */

export const CSV_TYPE = 'text/csv; charset=utf-8; header=present';

/** The spins of an account, as http/partner/spins.ts writes them. */
export const SPIN_CSV = {
  head: 'spinId,createdAt,gameId,playerId,requestId,wagerUsd,payoutUsd,prizeTier,balanceUsd,sandbox,outcomeIndex\r\n',
  example:
    '04f965c9ca0a730d47062f0635d6a943,2026-11-22T04:14:01.121Z,3,"alice","0197d2c4-9c1e-7a55-8f6e-3b1f0a2c4d5e",0.25,0.5,1,1000.25,,1041\r\n',
} as const;

/** The Accept header (RFC 9110, 12.5.1) ranks text/csv above application/json. */
export function prefersCsv(accept: string): boolean {
  const ranges = new Map<string, number>();
  for (const range of accept.toLowerCase().split(',')) {
    const [type, ...parameters] = range.split(';').map((part) => part.trim());
    const weight = parameters.find((parameter) => parameter.startsWith('q='));
    ranges.set(type!, weight === undefined ? 1 : Number(weight.slice(2)));
  }
  const quality = (type: string): number =>
    ranges.get(type) ?? ranges.get(`${type.split('/')[0]}/*`) ?? ranges.get('*/*') ?? 0;
  return quality('text/csv') > quality('application/json');
}
