/**
 * Creates the published test vectors of proofs from fixed secrets: a log with a genesis record, a block of
 * slot outcomes and a void.
 */
import { shoeCommitment } from '../../src/domain/games/shoe.js';
import { checkpointText, tlogProofText } from '../../src/domain/publicLog/checkpoints.js';
import {
  leafKeyOf,
  leafNonces,
  outcomeLeafData,
  secretHash,
  shoeLeafData,
} from '../../src/domain/publicLog/leaves.js';
import {
  entryCommitment,
  entryText,
  labelKeyHash,
  labelOf,
  type PublicLogEntry,
  privateRecord,
  publicRecord,
} from '../../src/domain/publicLog/logEntries.js';
import {
  cosignatureLine,
  type Signer,
  signatureLine,
  signerOf,
  vkeyOf,
} from '../../src/domain/publicLog/notes.js';
import { bundleOf, tileOfRecords } from '../../src/domain/publicLog/tiles.js';
import {
  consistencyPath,
  inclusionPath,
  leafHash,
  MemoryTree,
  sha256,
} from '../../src/domain/publicLog/tree.js';

const GAME = 7;
const FROM_INDEX = 2048;
const CODES = [3, 0, 17];
const SHOE = { gameId: 9, index: 17 };
/**
 * Hashes of a PAR sheet and of blackjack rules. The sheet and the rules themselves are not part of the
 * vectors.
 */
const MATH_HASH = 'f8cf2008be6993806688f003ee1e532fb8f1f3d5bcfbdc0944a559544b93af41';
const RULES_HASH = 'bb76620ddc2e43bbea43a45836190a5cc017d1f3460896d85bb8b986a0dfb276';
const ORIGIN = 'spindle.example/log';
const COSIGNED_AT_S = 1_795_383_060;

/** Returns 32 bytes that count up from the given value. */
const counting = (from: number): Buffer => Buffer.from(Array.from({ length: 32 }, (_, at) => from + at));
const hex = (bytes: Buffer): string => bytes.toString('hex');
const base64 = (bytes: Buffer): string => bytes.toString('base64');

const LABEL_KEY = counting(0x40);

function blockVectors() {
  const seed = counting(0xc0);
  const nonce = counting(0x00);
  const leafKey = leafKeyOf({ gameId: GAME, fromIndex: FROM_INDEX, nonce });
  const keystream = leafNonces(leafKey, CODES.length);
  const nonces = CODES.map((_, at) => keystream.subarray(32 * at, 32 * at + 32));
  const leafData = CODES.map((code, at) =>
    outcomeLeafData({ gameId: GAME, index: FROM_INDEX + at }, code, nonces[at]!),
  );
  const tree = new MemoryTree(leafData.map(leafHash));
  return {
    gameId: GAME,
    fromIndex: FROM_INDEX,
    codes: CODES,
    seed: hex(seed),
    nonce: hex(nonce),
    leafKey: hex(leafKey),
    nonces: nonces.map(hex),
    leafData: leafData.map(hex),
    leaves: leafData.map((data) => hex(leafHash(data))),
    root: hex(tree.root()),
    pathOfSecond: inclusionPath(1, CODES.length, tree.read).map(hex),
    pathOfThird: inclusionPath(2, CODES.length, tree.read).map(hex),
    secretHash: hex(secretHash(nonce, seed)),
  };
}

function logged(entry: PublicLogEntry, salt: Buffer) {
  const text = entryText(entry);
  const commitment = entryCommitment(salt, text);
  const label = labelOf(LABEL_KEY, entry.number);
  return { text, salt, commitment, label, record: privateRecord(label, commitment) };
}

function shoeVectors() {
  const seed = counting(0x80);
  const rules = Buffer.from(RULES_HASH, 'hex');
  const commitment = shoeCommitment({ ...SHOE, rulesHash: rules, seed });
  const leafData = shoeLeafData(SHOE, commitment);
  return {
    ...SHOE,
    rulesHash: RULES_HASH,
    seed: hex(seed),
    commitment: hex(commitment),
    leafData: hex(leafData),
    leaf: hex(leafHash(leafData)),
  };
}

function logVectors(records: readonly Buffer[], genesis: string, signer: Signer) {
  const tree = new MemoryTree(records.map(leafHash));
  const [two, three] = [2, 3].map((size) => {
    const text = checkpointText({ origin: ORIGIN, size, root: tree.root(size) });
    return `${text}\n${signatureLine(text, signer)}`;
  });
  return {
    origin: ORIGIN,
    seed: hex(signer.seed),
    publicKey: hex(signer.publicKey),
    keyId: signer.keyId,
    vkey: vkeyOf(signer),
    genesis,
    logLeaves: records.map((record) => hex(leafHash(record))),
    tile: hex(tileOfRecords(records)),
    bundle: hex(bundleOf(records)),
    checkpoint2: two!,
    checkpoint3: three!,
    consistency2to3: consistencyPath(2, 3, tree.read).map(base64),
    inclusionOf1: inclusionPath(1, 3, tree.read).map(base64),
  };
}

export function proofVectors() {
  const block = blockVectors();
  const keyHash = hex(labelKeyHash(LABEL_KEY));
  const common = { version: 1, gameId: GAME, labelKeyHash: keyHash } as const;
  const blockEntry: PublicLogEntry = {
    ...common,
    type: 'block',
    number: 1,
    fromIndex: FROM_INDEX,
    count: CODES.length,
    root: block.root,
    mathHash: MATH_HASH,
    secretHash: block.secretHash,
    sealedAt: '2026-11-22T21:30:00.000Z',
    late: false,
  };
  const entry = logged(blockEntry, counting(0x20));
  const reason = 'Redis lost the data of a cell';
  const voidEntry: PublicLogEntry = {
    ...common,
    type: 'void',
    number: 2,
    fromIndex: FROM_INDEX + 2,
    count: 1,
    reason,
    voidedAt: '2026-11-22T21:31:00.000Z',
  };
  const voided = logged(voidEntry, counting(0x60));
  const signer = signerOf(ORIGIN, 'log', counting(0x00));
  const at = '2026-11-22T21:00:00.000Z';
  const genesis = publicRecord({
    type: 'genesis',
    at,
    format: 'spindle log v1',
    origin: ORIGIN,
    vkey: vkeyOf(signer),
  });
  const log = logVectors([genesis, entry.record, voided.record], genesis.toString('utf8', 1), signer);
  const witness = signerOf('witness.example/w1', 'witness', counting(0x20));
  const text = log.checkpoint3.slice(0, log.checkpoint3.indexOf('\n\n') + 1);
  const response = cosignatureLine(text, witness, COSIGNED_AT_S);
  const path = log.inclusionOf1.map((hash) => Buffer.from(hash, 'base64'));
  return {
    about:
      'Test vectors of docs/proofs.md; made by `npm run vectors`. Bytes are hexadecimal unless they are text.',
    block,
    entry: {
      entry: blockEntry,
      text: entry.text,
      salt: hex(entry.salt),
      commitment: hex(entry.commitment),
      labelKey: hex(LABEL_KEY),
      label: hex(entry.label),
      record: hex(entry.record),
      logLeaf: hex(leafHash(entry.record)),
    },
    void: {
      text: voided.text,
      salt: hex(voided.salt),
      record: hex(voided.record),
      logLeaf: hex(leafHash(voided.record)),
    },
    shoe: shoeVectors(),
    log,
    witness: {
      name: witness.name,
      seed: hex(witness.seed),
      vkey: vkeyOf(witness),
      keyId: witness.keyId,
      time: COSIGNED_AT_S,
      request: `old 2\n${log.consistency2to3.join('\n')}\n\n${log.checkpoint3}`,
      response,
      monitoringPath: `${hex(sha256(ORIGIN))}/checkpoint`,
    },
    proof: {
      format: 'spindle proof v1',
      spinId: '00112233445566778899aabbccddeeff',
      gameId: GAME,
      outcome: { index: FROM_INDEX + 1, code: CODES[1], nonce: block.nonces[1] },
      path: block.pathOfSecond,
      entry: entry.text,
      salt: hex(entry.salt),
      label: hex(entry.label),
      logIndex: 1,
      loggedAt: '2026-11-22T21:30:00.061Z',
      tlogProof: tlogProofText({ index: 1, path, checkpoint: log.checkpoint3 + response }),
    },
  };
}
