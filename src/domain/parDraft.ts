/** A PAR sheet upload without the parts that have a wrong type. The rules (parRules.ts) are applied to it. */

export interface Draft {
  readonly numReels: number | undefined;
  readonly stops: readonly (number | undefined)[] | undefined;
  readonly certifiedRtp: number | undefined;
  readonly denominationUsd: number | undefined;
  readonly symbols: readonly { name: string | undefined; display: string | undefined }[] | undefined;
  readonly tiers:
    | readonly {
        tierId: number | undefined;
        probability: number | undefined;
        payMultiplier: number | undefined;
      }[]
    | undefined;
  readonly combinations: readonly DraftCombination[] | undefined;
}

export interface DraftCombination {
  readonly reelSymbols: readonly (string | undefined)[] | undefined;
  readonly comboString: string | undefined;
  readonly payMultiplier: number | undefined;
  readonly comboProbability: number | undefined;
  readonly tierId: number | undefined;
}

/**
 * Reads the parts of the correct types from an upload.
 * @param body anything that JSON.parse returns
 */
export function readDraft(body: unknown): Draft {
  const of = fieldsOf(body);
  return {
    numReels: integerOf(of('numReels')),
    stops: listOf(of('virtualStopsPerReel'), integerOf),
    certifiedRtp: numberOf(of('certifiedRtp')),
    denominationUsd: numberOf(of('denominationUsd')),
    symbols: listOf(of('symbols'), (item) => {
      const ofSymbol = fieldsOf(item);
      return { name: stringOf(ofSymbol('name')), display: stringOf(ofSymbol('display')) };
    }),
    tiers: listOf(of('tiers'), (item) => {
      const ofTier = fieldsOf(item);
      return {
        tierId: integerOf(ofTier('tierId')),
        probability: numberOf(ofTier('probability')),
        payMultiplier: numberOf(ofTier('payMultiplier')),
      };
    }),
    combinations: listOf(of('combinations'), readCombination),
  };
}

function readCombination(item: unknown): DraftCombination {
  const of = fieldsOf(item);
  return {
    reelSymbols: listOf(of('reelSymbols'), stringOf),
    comboString: stringOf(of('comboString')),
    payMultiplier: numberOf(of('payMultiplier')),
    comboProbability: numberOf(of('comboProbability')),
    tierId: integerOf(of('tierId')),
  };
}

function fieldsOf(value: unknown): (name: string) => unknown {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return (name) =>
    isObject && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

function listOf<T>(value: unknown, read: (item: unknown) => T): T[] | undefined {
  return Array.isArray(value) ? value.map(read) : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

function integerOf(value: unknown): number | undefined {
  return Number.isInteger(value) ? (value as number) : undefined;
}

function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
