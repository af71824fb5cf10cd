/** Reads the published test vectors of proofs. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { proofVectors } from '../../../tools/vectors/proof.js';
import { ROOT } from '../../support/root.js';

type ProofVectors = ReturnType<typeof proofVectors>;

export const readVectors = (): ProofVectors =>
  JSON.parse(readFileSync(join(ROOT, 'docs', 'vectors', 'proof-v1.json'), 'utf8'));
