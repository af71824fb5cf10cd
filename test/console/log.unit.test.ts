/** Tests what the console shows of a public log, read from its note and policy. */
import { expect, test } from 'vitest';
import { shownLog } from '../../console/log.js';
import { readVectors } from '../domain/publicLog/proofVectors.js';

const { log, witness, proof } = readVectors();
const note = proof.tlogProof.slice(proof.tlogProof.indexOf('\n\n') + 2);

test('the console shows the size, keys and witnesses of a public log, and when each witness signed', () => {
  const other = 'other.example/w2+20324abe+BCmsuuFBvMrwsi4alNNNC8c2HlJtC/4SyJeUvJMilm3X';
  const policy = `log ${log.vkey}\nwitness one ${witness.vkey} https://w1.example\nwitness two ${other}\ngroup g any one two\nquorum g\n`;
  expect(shownLog(note, policy)).toEqual({
    origin: log.origin,
    size: 3,
    root: 'ao7au5zs0StYzsJNQiYCKrhx5S/3/p0UhY+HMXlWlT4=',
    quorum: 'g',
    vkeys: [log.vkey],
    witnesses: [
      { name: 'one', vkey: witness.vkey, signedAt: 1_795_383_060 },
      { name: 'two', vkey: other, signedAt: undefined },
    ],
  });
  expect(shownLog(log.checkpoint3, `log ${log.vkey}\nquorum none\n`)).toMatchObject({
    witnesses: [],
    quorum: 'none',
  });
});
