/**
 * Computes exactly how often the dealer reaches each total with one deck, if the dealer stands on soft 17 and
 * the peek found no natural.
 */

export interface DealerOutcome {
  bust: number;
  17: number;
  18: number;
  19: number;
  20: number;
  21: number;
}

const RANKS = 'A23456789T';

/**
 * The probabilities of the dealer's totals by up card. `all` weights the up cards by how often each of them
 * appears in a round that continues after the peek.
 */
export function dealerOutcomes(): Map<string, DealerOutcome> {
  const outcomes = new Map<string, DealerOutcome>();
  const all: DealerOutcome = { bust: 0, 17: 0, 18: 0, 19: 0, 20: 0, 21: 0 };
  let weights = 0;
  for (let up = 1; up <= 10; up++) {
    const left = Array.from({ length: 11 }, (_, value) => (value === 0 ? 0 : value === 10 ? 16 : 4));
    const upWeight = left[up]! / 52;
    left[up]!--;
    const hidden = up === 1 ? 10 : up === 10 ? 1 : 0;
    const natural = hidden === 0 ? 0 : left[hidden]! / 51;
    const outcome: DealerOutcome = { bust: 0, 17: 0, 18: 0, 19: 0, 20: 0, 21: 0 };
    for (let hole = 1; hole <= 10; hole++) {
      if (hole === hidden) continue;
      const probability = left[hole]! / 51 / (1 - natural);
      left[hole]!--;
      draw(up + hole, up === 1 || hole === 1, left, 50, probability, outcome);
      left[hole]!++;
    }
    outcomes.set(RANKS[up - 1]!, outcome);
    const weight = upWeight * (1 - natural);
    weights += weight;
    for (const key of Object.keys(all) as (keyof DealerOutcome)[]) all[key] += weight * outcome[key];
  }
  for (const key of Object.keys(all) as (keyof DealerOutcome)[]) all[key] /= weights;
  return outcomes.set('all', all);
}

/** @param hard the total of the hand with aces counted as one */
function draw(
  hard: number,
  hasAce: boolean,
  left: number[],
  cards: number,
  probability: number,
  outcome: DealerOutcome,
): void {
  const total = hasAce && hard <= 11 ? hard + 10 : hard;
  if (total > 21) {
    outcome.bust += probability;
    return;
  }
  if (total >= 17) {
    outcome[total as 17] += probability;
    return;
  }
  for (let value = 1; value <= 10; value++) {
    const count = left[value]!;
    if (count === 0) continue;
    left[value] = count - 1;
    draw(hard + value, hasAce || value === 1, left, cards - 1, (probability * count) / cards, outcome);
    left[value] = count;
  }
}
