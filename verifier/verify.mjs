/**
 * Verifies a `spindle proof v1` (docs/proofs.md), which proves that an outcome was fixed in a public log. One
 * file without imports, for browsers (Firefox 129, Safari 17, Chrome 137 or later) and Node (20 or later). It
 * sends no requests, except that it reads tiles of the log by `readTile` to compare earlier checkpoints.
 */

const text8 = new TextEncoder();
const HASH = 32;
const U32_MAX = 0xffff_ffff;
const LOG_KEY = 1;
const WITNESS_KEY = 4;
const TILE_WIDTH = 256;
const MICROS_DIGITS = 6;

/** A fault that was found in a proof, with a message for people. */
class Fault extends Error {}

/** Throws a Fault with the message if the condition is false. */
function must(holds, message) {
  if (!holds) throw new Fault(message);
}

// Helper functions for bytes and numbers

function joined(...parts) {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

const ascii = (text) => text8.encode(text);

const equal = (a, b) => a.length === b.length && a.every((byte, at) => byte === b[at]);

/** Encodes an unsigned integer as the given number of bytes, big endian. */
function packed(number, bytes) {
  const out = new Uint8Array(bytes);
  for (let at = bytes - 1, rest = BigInt(number); at >= 0; at--, rest >>= 8n) out[at] = Number(rest & 255n);
  return out;
}

const toHex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/** Decodes lowercase hexadecimal text of the given number of bytes. Any other text is a Fault. */
function fromHex(text, bytes, name) {
  const isHex = typeof text === 'string' && text.length === 2 * bytes && /^[0-9a-f]*$/.test(text);
  must(isHex, `${name} must be ${bytes} bytes as ${2 * bytes} lowercase hexadecimal digits`);
  return Uint8Array.from({ length: bytes }, (_, at) => Number.parseInt(text.slice(2 * at, 2 * at + 2), 16));
}

/** Decodes base64 (RFC 4648 section 4) with padding and zero unused bits. Any other text is a Fault. */
function fromBase64(text, name) {
  let binary;
  try {
    binary = atob(text);
  } catch {
    binary = undefined;
  }
  must(binary !== undefined && btoa(binary) === text, `${name} must be canonical base64`);
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}

/** Parses an integer from 0 to 2^53 - 1 in its canonical decimal form. Any other text is a Fault. */
function fromDecimal(text, name) {
  must(/^(0|[1-9][0-9]{0,15})$/.test(text), `${name} must be a whole number without leading zeros`);
  const number = Number(text);
  must(Number.isSafeInteger(number), `${name} is too large`);
  return number;
}

function wholeNumber(value, max, name) {
  must(Number.isSafeInteger(value) && value >= 0 && value <= max, `${name} must be from 0 to ${max}`);
  return value;
}

// Hashes and Merkle trees (RFC 6962 section 2.1, RFC 9162 section 2.1.3)

const sha256 = async (...parts) => new Uint8Array(await crypto.subtle.digest('SHA-256', joined(...parts)));
const leafHash = (data) => sha256(Uint8Array.of(0), data);
const nodeHash = (left, right) => sha256(Uint8Array.of(1), left, right);

/** Returns the largest power of two that is smaller than a tree size of at least 2. */
function split(size) {
  let power = 1;
  while (power * 2 < size) power *= 2;
  return power;
}

/** Returns the root that a leaf hash and its inclusion path give. The path starts with the leaf's sibling. */
async function rootByPath(index, size, leaf, path) {
  must(index < size, `a tree of ${size} leaves has no leaf ${index}`);
  const sides = [];
  for (let from = 0, to = size; to - from > 1; ) {
    const middle = from + split(to - from);
    sides.unshift(index < middle);
    if (index < middle) to = middle;
    else from = middle;
  }
  must(
    path.length === sides.length,
    `the path has ${path.length} hashes, but the tree needs ${sides.length}`,
  );
  let hash = leaf;
  for (const [at, other] of path.entries()) {
    hash = await (sides[at] ? nodeHash(hash, other) : nodeHash(other, hash));
  }
  return hash;
}

/** Returns the ranges of leaves whose hashes form the consistency proof for a smaller tree. */
function consistencyRanges(old, size) {
  const ranges = [];
  let from = 0;
  let to = size;
  while (old < to) {
    const middle = from + split(to - from);
    if (old <= middle) {
      ranges.unshift([middle, to]);
      to = middle;
    } else {
      ranges.unshift([from, middle]);
      from = middle;
    }
  }
  return from === 0 ? ranges : [[from, to], ...ranges];
}

async function isConsistent(old, tree, path) {
  const ranges = consistencyRanges(old.size, tree.size);
  if (ranges.length !== path.length) return false;
  const begun = ranges[0]?.[1] === old.size;
  let older = begun ? path[0] : old.root;
  let newer = older;
  for (let at = begun ? 1 : 0; at < path.length; at++) {
    if (ranges[at][0] >= old.size) newer = await nodeHash(newer, path[at]);
    else {
      older = await nodeHash(path[at], older);
      newer = await nodeHash(path[at], newer);
    }
  }
  return equal(older, old.root) && equal(newer, tree.root);
}

/** Returns the path of a tile, relative to the address of the log (C2SP tlog-tiles). */
function tilePath(level, index, width) {
  const digits = String(index);
  const groups = digits.padStart(Math.ceil(digits.length / 3) * 3, '0').match(/.{3}/g);
  const spelled = groups.map((group, at) => (at < groups.length - 1 ? `x${group}` : group)).join('/');
  return `tile/${level}/${spelled}${width < TILE_WIDTH ? `.p/${width}` : ''}`;
}

/** Returns the hash of a range of leaves, computed from the log's tiles. Wrong tiles give wrong roots. */
async function rangeHash([from, to], size, readTile) {
  const hashes = [];
  for (let at = from; at < to; ) {
    let level = 0;
    while (at % 2 ** (level + 1) === 0 && at + 2 ** (level + 1) <= to) level++;
    hashes.push(await subtreeHash(level, at / 2 ** level, size, readTile));
    at += 2 ** level;
  }
  let hash = hashes.pop();
  while (hashes.length > 0) hash = await nodeHash(hashes.pop(), hash);
  return hash;
}

async function subtreeHash(level, index, size, readTile) {
  const tileLevel = Math.floor(level / 8);
  const count = 2 ** (level % 8);
  const tileIndex = Math.floor((index * count) / TILE_WIDTH);
  const all = Math.floor(size / TILE_WIDTH ** tileLevel);
  const width = Math.min(TILE_WIDTH, all - tileIndex * TILE_WIDTH);
  const path = tilePath(tileLevel, tileIndex, width);
  const tile = await readTile(path);
  must(tile.length === width * HASH, `${path} has ${tile.length} bytes, not ${width * HASH}`);
  const first = (index * count) % TILE_WIDTH;
  let hashes = Array.from({ length: count }, (_, at) =>
    tile.subarray((first + at) * HASH, (first + at + 1) * HASH),
  );
  while (hashes.length > 1) {
    const pairs = Array.from({ length: hashes.length / 2 }, (_, at) => [hashes[2 * at], hashes[2 * at + 1]]);
    hashes = await Promise.all(pairs.map(([left, right]) => nodeHash(left, right)));
  }
  return hashes[0];
}

// Helper functions for canonical JSON (RFC 8785)

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value !== null && typeof value === 'object') {
    const members = Object.keys(value).sort();
    return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`;
  }
  return JSON.stringify(value);
}

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

// Keys, notes and policies (C2SP signed-note, tlog-checkpoint, tlog-cosignature, tlog-policy)

const isKeyName = (name) => /^[^\s+]+$/u.test(name);

/** Parses a verifier key: `name+id+base64(type ‖ public key)`. */
async function parseVkey(vkey, type) {
  const [, name = '', id = '', encoded = ''] = /^([^+]*)\+([^+]*)\+(.*)$/su.exec(vkey) ?? [];
  must(isKeyName(name), `«${vkey}» is not a key, because a key has the form NAME+KEYID+KEY`);
  const typed = fromBase64(encoded, `the key of ${name}`);
  must(
    typed.length === 1 + HASH && typed[0] === type,
    `the key of ${name} is not an Ed25519 key of type ${type}`,
  );
  const hash = await sha256(ascii(`${name}\n`), typed);
  must(toHex(hash.subarray(0, 4)) === id, `the key id of ${name} does not match its key`);
  return { name, id, type, publicKey: typed.subarray(1) };
}

/** Parses a signed note into its text and its signature lines. */
function parseNote(note) {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a note has no control characters but line ends.
  const isPlain = typeof note === 'string' && !/[\u0000-\u0009\u000b-\u001f\ufffd]/.test(note);
  must(isPlain && note.length <= 1_000_000 && note.endsWith('\n'), 'the text is not a signed note');
  const at = note.lastIndexOf('\n\n');
  must(at >= 0, 'the note has no signatures');
  const lines = note.slice(at + 2, -1).split('\n');
  must(lines.length <= 100, 'the note has more than 100 signature lines');
  const signatures = lines.map((line) => {
    const [, name = '', encoded = ''] = /^— (\S+) (\S+)$/u.exec(line) ?? [];
    must(isKeyName(name), 'a signature line is malformed');
    const bytes = fromBase64(encoded, `the signature of ${name}`);
    must(bytes.length > 4, `the signature of ${name} is too short`);
    return { name, id: toHex(bytes.subarray(0, 4)), bytes: bytes.subarray(4) };
  });
  return { text: note.slice(0, at + 1), signatures };
}

async function isSigned(text, { bytes }, { type, publicKey }) {
  const key = await crypto.subtle.importKey('raw', publicKey, { name: 'Ed25519' }, false, ['verify']);
  const verifies = (signature, data) => crypto.subtle.verify({ name: 'Ed25519' }, key, signature, data);
  if (type === LOG_KEY) return bytes.length === 64 && verifies(bytes, text8.encode(text));
  if (bytes.length !== 72) return false;
  const seconds = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0);
  return verifies(bytes.subarray(8), text8.encode(`cosignature/v1\ntime ${seconds}\n${text}`));
}

/**
 * Returns the keys that signed a note. Unknown keys are ignored. A known key's wrong signature is a Fault.
 */
async function signersOf({ text, signatures }, keys) {
  const signed = [];
  for (const key of keys) {
    const own = signatures.filter(({ name, id }) => name === key.name && id === key.id);
    for (const line of own) must(await isSigned(text, line, key), `the signature of ${key.name} is invalid`);
    if (own.length > 0) signed.push(key);
  }
  return signed;
}

/** Parses the text of a checkpoint. Spindle's have exactly three lines: origin, size and root. */
function parseCheckpoint(text) {
  const [origin, decimal, encoded, ...rest] = text.split('\n');
  must(rest.length === 1 && rest[0] === '', 'the note needs an origin, a size and a root, one per line');
  const size = fromDecimal(decimal, 'the size');
  const root = fromBase64(encoded, 'the root');
  must(root.length === HASH, 'the root must have 32 bytes');
  return { origin, size, root };
}

/** Parses a policy file: the keys of logs and witnesses, groups of witnesses, and the quorum. */
async function parsePolicy(text) {
  const policy = { logs: [], witnesses: [], groups: new Map(), quorum: undefined };
  for (const [at, line] of text.split('\n').entries()) {
    const words = line.trim().split(/[ \t]+/);
    if (words[0] === '' || words[0].startsWith('#')) continue;
    try {
      await readPolicyLine(policy, words);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      throw new Fault(`line ${at + 1} of the policy: ${error.message}`);
    }
  }
  must(policy.quorum !== undefined, 'the policy has no quorum line');
  return policy;
}

async function readPolicyLine(policy, [word, name, ...rest]) {
  const isName = (label) => policy.groups.has(label) || policy.witnesses.some((each) => each.label === label);
  must(name !== undefined, 'the line is incomplete');
  if (word === 'log') {
    must(rest.length <= 1, 'a log line has a key and maybe an address');
    policy.logs.push(await parseVkey(name, LOG_KEY));
  } else if (word === 'witness') {
    must(rest.length >= 1 && rest.length <= 2, 'a witness line has a name, a key and maybe an address');
    must(!isName(name) && name !== 'none', `the name ${name} is already used`);
    const key = await parseVkey(rest[0], WITNESS_KEY);
    const isNew = policy.witnesses.every((each) => !equal(each.publicKey, key.publicKey));
    must(isNew, 'an earlier witness has the same key');
    policy.witnesses.push({ ...key, label: name });
  } else if (word === 'group') {
    const [count, ...members] = rest;
    must(!isName(name) && name !== 'none', `the name ${name} is already used`);
    const taken = [...policy.groups.values()].flatMap((group) => group.members);
    members.forEach((member, at) => {
      must(isName(member), `no earlier line defines «${member}»`);
      must(members.indexOf(member) === at && !taken.includes(member), `${member} is already in a group`);
    });
    const threshold =
      count === 'any' ? 1 : count === 'all' ? members.length : fromDecimal(count ?? '', 'the threshold');
    must(threshold >= 1 && threshold <= members.length, `the threshold must be from 1 to ${members.length}`);
    policy.groups.set(name, { threshold, members });
  } else if (word === 'quorum') {
    must(rest.length === 0 && policy.quorum === undefined, 'a policy must have exactly one quorum');
    must(name === 'none' || isName(name), `no earlier line defines «${name}»`);
    policy.quorum = name;
  } else must(false, `a line must begin with log, witness, group or quorum, not «${word}»`);
}

function isSatisfied({ groups, quorum }, signed) {
  const counts = (name) => {
    const group = groups.get(name);
    if (group === undefined) return signed.some(({ label }) => label === name);
    return group.members.filter(counts).length >= group.threshold;
  };
  return quorum === 'none' || counts(quorum);
}

// Verification steps

/** Returns the trusted keys and the policy. They come from the options and never from the proof. */
async function trustOf({ logKeys = [], policy }) {
  const read = policy === undefined ? undefined : await parsePolicy(policy);
  const logs = [...(read?.logs ?? [])];
  for (const vkey of logKeys) logs.push(await parseVkey(vkey, LOG_KEY));
  must(logs.length > 0, 'no key of a log is given. Give a key, or a policy that names one');
  return { logs, policy: read };
}

/** Parses a note into its checkpoint, and verifies the log's signature with a trusted key for its origin. */
async function trustedCheckpoint(noteText, trust) {
  const note = parseNote(noteText);
  const checkpoint = parseCheckpoint(note.text);
  const known = trust.logs.filter(({ name }) => name === checkpoint.origin);
  must(known.length > 0, `you gave no key of «${checkpoint.origin}», the log of this checkpoint`);
  const signed = await signersOf(note, known);
  must(signed.length > 0, `none of the given keys of ${checkpoint.origin} signed the checkpoint`);
  return { note, checkpoint };
}

/** Step 1: parses the checkpoint of the proof and verifies its signatures. */
async function readCheckpoint(tlogProof, trust) {
  const end = tlogProof.indexOf('\n\n');
  must(end >= 0, 'tlogProof has no checkpoint');
  return witnessed(tlogProof.slice(end + 2), trust);
}

/** Parses a note into its checkpoint. Verifies the log's signature and the policy's quorum of witnesses. */
async function witnessed(noteText, trust) {
  const { note, checkpoint } = await trustedCheckpoint(noteText, trust);
  if (trust.policy !== undefined) {
    const witnesses = await signersOf(note, trust.policy.witnesses);
    must(
      isSatisfied(trust.policy, witnesses),
      "the witnesses that signed the checkpoint do not satisfy the policy's quorum",
    );
  }
  return checkpoint;
}

/** Parses the index and the inclusion path of a tlog-proof. */
function readPath(tlogProof) {
  const [head, place = '', ...lines] = tlogProof.slice(0, Math.max(0, tlogProof.indexOf('\n\n'))).split('\n');
  must(head === 'c2sp.org/tlog-proof@v1', 'tlogProof does not have the format c2sp.org/tlog-proof@v1');
  must(place.startsWith('index '), 'tlogProof has no index');
  const index = fromDecimal(place.slice(6), 'the index of tlogProof');
  must(lines.length <= 63, 'tlogProof has more than 63 hashes');
  const path = lines.map((line) => fromBase64(line, 'a hash of tlogProof'));
  must(
    path.every((hash) => hash.length === HASH),
    'a hash of tlogProof does not have 32 bytes',
  );
  return { index, path };
}

/** Step 2: verifies that salt, entry, label and path give the root of the checkpoint. */
async function checkLogged({ proof, checkpoint }) {
  const { index, path } = readPath(proof.tlogProof);
  must(index === proof.logIndex, `logIndex is ${proof.logIndex}, but tlogProof has the index ${index}`);
  const label = fromHex(proof.label, 16, 'label');
  const commitment = await commitmentOf(proof);
  const leaf = await leafHash(joined(Uint8Array.of(1), label, commitment));
  const root = await rootByPath(index, checkpoint.size, leaf, path);
  must(equal(root, checkpoint.root), `the record is not at index ${index} of the checkpoint's tree`);
}

const commitmentOf = async ({ salt, entry }) =>
  sha256(ascii('spindle entry v1\n'), fromHex(salt, HASH, 'salt'), text8.encode(entry));

const ENTRY_TYPES = ['block', 'pool', 'shoes'];

/** Step 3: parses the entry. The commitment of step 2 covers its text, but not the format. */
function readEntry(proof) {
  const entry = readEntryText(proof.entry, ENTRY_TYPES);
  wholeNumber(entry.fromIndex, Number.MAX_SAFE_INTEGER, 'fromIndex of the entry');
  wholeNumber(entry.count, U32_MAX, 'count of the entry');
  return entry;
}

function readEntryText(text, types) {
  let entry;
  try {
    entry = JSON.parse(text);
  } catch {
    entry = undefined;
  }
  must(isObject(entry), 'entry is not a JSON object as text');
  must(canonical(entry) === text, 'entry is not in its canonical form (RFC 8785)');
  must(entry.version === 1, 'entry does not have version 1');
  must(types.includes(entry.type), `entry has the type «${entry.type}», which has no outcomes`);
  wholeNumber(entry.number, Number.MAX_SAFE_INTEGER, 'number of the entry');
  return entry;
}

function checkEntry({ proof, entry }) {
  must(
    entry.gameId === proof.gameId,
    `the entry belongs to game ${entry.gameId}, but the proof to game ${proof.gameId}`,
  );
  const { index } = proof.shoe ?? proof.outcome;
  const isWithin = index >= entry.fromIndex && index - entry.fromIndex < entry.count;
  must(isWithin, `the entry has ${entry.count} outcomes from ${entry.fromIndex} on, so not index ${index}`);
  const isShoe = entry.type === 'shoes';
  must(isShoe === (proof.shoe !== undefined), `an entry of type ${entry.type} does not fit this proof`);
}

/** Step 4: verifies that the outcome or shoe, with its path, gives the root of the entry. */
async function checkOutcome({ proof, entry }) {
  const { index } = proof.shoe ?? proof.outcome;
  const place = joined(packed(proof.gameId, 4), packed(index, 8));
  const data =
    proof.shoe === undefined
      ? joined(
          ascii('SPDLout1'),
          place,
          packed(proof.outcome.code, 2),
          fromHex(proof.outcome.nonce, HASH, 'outcome.nonce'),
        )
      : joined(ascii('SPDLsho1'), place, fromHex(proof.shoe.commitment, HASH, 'shoe.commitment'));
  must(Array.isArray(proof.path), 'path must be a list');
  const path = proof.path.map((hash) => fromHex(hash, HASH, 'each hash of path'));
  const root = await rootByPath(index - entry.fromIndex, entry.count, await leafHash(data), path);
  must(toHex(root) === entry.root, 'the outcome is not in the logged block');
}

const pick = (value, names) => Object.fromEntries(names.map((name) => [name, value?.[name]]));
const SHEET = [
  'gameTitle',
  'manufacturer',
  'numReels',
  'virtualStopsPerReel',
  'certifiedRtp',
  'denominationUsd',
];
const COMBINATION = [
  'reelSymbols',
  'comboString',
  'payMultiplier',
  'comboProbability',
  'tierId',
  'displayWeight',
];
const TIER = ['tierId', 'name', 'probability', 'payMultiplier'];

/** Returns the text of which `mathHash` of an entry is the hash: PAR sheet, prize table or rules. */
function mathTextOf({ sheet, table, rules }) {
  if (sheet !== undefined) {
    const lists = [sheet.symbols, sheet.tiers, sheet.combinations];
    must(lists.every(Array.isArray), 'the sheet must have lists of symbols, tiers and combinations');
    return canonical({
      ...pick(sheet, SHEET),
      symbols: sheet.symbols.map((each) => pick(each, ['name', 'display'])),
      tiers: sheet.tiers.map((each) => pick(each, TIER)),
      combinations: sheet.combinations.map((each) => pick(each, COMBINATION)),
    });
  }
  if (rules !== undefined) return canonical(rules);
  return prizeTableText(table);
}

/** Returns the text of a prize table as docs/raffles.md defines it. */
function prizeTableText({ ticketPriceUsd, poolSize, prizes }) {
  must(Array.isArray(prizes), 'the table has no list of prizes');
  const usd = (value) => {
    const micros = microsOf(value);
    must(micros !== undefined, 'an amount of the table is not a whole number of micro-USD');
    return Number(micros) / 1e6;
  };
  return canonical({
    ticketPriceUsd: usd(ticketPriceUsd),
    poolSize,
    prizes: prizes.map((prize) => ({
      ...pick(prize, ['prizeName', 'prizeTier', 'count']),
      valueUsd: usd(prize.valueUsd),
    })),
  });
}

/** Returns the exact digits and exponent of a number, or undefined for a value that is no finite number. */
function decimalOf(number) {
  const [, sign, whole, fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(number)) ?? [];
  if (whole === undefined) return undefined;
  return { digits: BigInt(`${sign}${whole}${fraction}`), exponent: Number(exponent) - fraction.length };
}

/** Returns the product of numbers in micro-USD. Returns undefined if the product is not an integer. */
function microsOf(...factors) {
  const decimals = factors.map(decimalOf);
  if (decimals.includes(undefined)) return undefined;
  const digits = decimals.reduce((product, each) => product * each.digits, 1n);
  const exponent = decimals.reduce((sum, each) => sum + each.exponent, MICROS_DIGITS);
  if (exponent >= 0) return digits * 10n ** BigInt(exponent);
  const scale = 10n ** BigInt(-exponent);
  return digits % scale === 0n ? digits / scale : undefined;
}

/** Step 5: compares the PAR sheet, prize table or rules with the logged hash. */
async function checkMath({ proof, entry, options }) {
  const { sheet, table, rules } = options;
  if (sheet === undefined && table === undefined && rules === undefined) return;
  const name = sheet !== undefined ? 'sheet' : table !== undefined ? 'table' : 'rules';
  const wanted = { block: 'sheet', pool: 'table', shoes: 'rules' }[entry.type];
  must(name === wanted, `an entry of type ${entry.type} needs the ${wanted}, not the ${name}`);
  must(isObject(options[name]), `the ${name} must be a JSON object`);
  const hash = toHex(await sha256(text8.encode(mathTextOf(options))));
  must(hash === entry.mathHash, `the hash of the ${name} differs from the log`);
  if (proof.outcome === undefined) return;
  const { code } = proof.outcome;
  if (table !== undefined) must(code <= table.prizes.length, `the table has no prize ${code}`);
  if (sheet !== undefined) must(code < sheet.combinations.length, `the sheet has no combination ${code}`);
}

/**
 * Returns the tier, payout (micro-USD) and text that the answer to a spin must contain for an outcome code.
 */
function shownOf(code, { sheet, table }) {
  if (sheet !== undefined) {
    const { tierId, payMultiplier, comboString } = sheet.combinations[code];
    return { tier: tierId, micros: microsOf(sheet.denominationUsd, payMultiplier), shown: comboString };
  }
  const prize = code === 0 ? undefined : table.prizes[code - 1];
  return { tier: prize?.prizeTier ?? 0, micros: microsOf(prize?.valueUsd ?? 0), shown: prize?.prizeName };
}

function checkSpin({ proof, options }) {
  const { spin, sheet, table } = options;
  if (spin === undefined) return;
  must(isObject(spin), 'the response must be a JSON object');
  if (proof.shoe !== undefined) {
    must(spin.roundId === proof.roundId, `the round is ${spin.roundId}, but the proof has ${proof.roundId}`);
    must(spin.shoe?.index === proof.shoe.index, "the shoe's index differs from the proof");
    must(spin.shoe?.commitment === proof.shoe.commitment, "the shoe's commitment differs from the proof");
    return;
  }
  must(spin.spinId === proof.spinId, `the spin is ${spin.spinId}, but the proof has ${proof.spinId}`);
  const code = proof.outcome.code;
  const isGiven = code < (sheet?.combinations?.length ?? -1) || code <= (table?.prizes?.length ?? -1);
  must(isGiven, 'the response can only be compared with a sheet or table. Give that, too');
  const { tier, micros, shown } = shownOf(code, options);
  must(
    spin.outcome?.prizeTier === tier,
    `the response shows tier ${spin.outcome?.prizeTier}, but the outcome has tier ${tier}`,
  );
  must(
    micros !== undefined && microsOf(spin.outcome?.payoutUsd) === micros,
    `the response pays ${spin.outcome?.payoutUsd} USD, but the outcome pays ${micros} micro-USD`,
  );
  const text = spin.presentation?.comboString ?? spin.presentation?.prizeName;
  must(shown === undefined || text === shown, `the response shows «${text}», but the outcome is «${shown}»`);
}

/** Verifies that the revealed seed of a shoe belongs to the shoe's commitment. */
async function checkSeed({ proof, entry }) {
  if (proof.shoe === undefined || proof.shoe.seed === null) return;
  const data = joined(
    ascii('spindle blackjack shoe v1\n'),
    packed(proof.gameId, 4),
    packed(proof.shoe.index, 8),
    fromHex(entry.mathHash, HASH, 'mathHash of the entry'),
    fromHex(proof.shoe.seed, HASH, 'shoe.seed'),
  );
  must(toHex(await sha256(data)) === proof.shoe.commitment, "the seed does not match the shoe's commitment");
}

/** Step 6: verifies with the game's label key that the label belongs to the game's entry. */
async function checkLabel({ proof, entry, options }) {
  if (options.labelKey === undefined) return;
  const bytes = fromHex(options.labelKey, HASH, 'the label key');
  const hash = toHex(await sha256(ascii('spindle label key v1\n'), bytes));
  must(hash === entry.labelKeyHash, 'the label key does not belong to the game');
  const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const label = new Uint8Array(await crypto.subtle.sign('HMAC', key, packed(entry.number, 8)));
  must(
    toHex(label.subarray(0, 16)) === proof.label,
    `the label does not match entry ${entry.number} of the game`,
  );
}

/**
 * Step 6: compares the earlier checkpoints that the user kept. Returns the smallest that contains the record.
 */
async function checkSeen({ proof, checkpoint, options, trust }) {
  let earliest;
  for (const [at, note] of (options.seen ?? []).entries()) {
    const name = `checkpoint ${at + 1} that you kept`;
    try {
      const seen = (await trustedCheckpoint(note, trust)).checkpoint;
      must(seen.origin === checkpoint.origin, `the checkpoint belongs to the log ${seen.origin}`);
      await checkContains(seen, checkpoint, options.readTile);
      if (seen.size > proof.logIndex && !(earliest?.size <= seen.size)) earliest = seen;
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      throw new Fault(`${name}: ${error.message}`);
    }
  }
  return earliest;
}

/** Verifies that the larger of two trees contains the smaller one. */
async function checkContains(one, other, readTile) {
  const [old, tree] = one.size <= other.size ? [one, other] : [other, one];
  must(old.size > 0, 'the checkpoint belongs to an empty log');
  const differs = `the log of ${tree.size} records does not contain the log of ${old.size} records, so the log has shown two histories`;
  if (old.size === tree.size) {
    must(equal(old.root, tree.root), differs);
    return;
  }
  must(readTile !== undefined, 'the comparison needs tiles of the log. Give the address of the log');
  const ranges = consistencyRanges(old.size, tree.size);
  const path = await Promise.all(ranges.map((range) => rangeHash(range, tree.size, readTile)));
  must(await isConsistent(old, tree, path), differs);
}

const STEPS = [
  ['logged', checkLogged],
  ['entry', checkEntry],
  ['outcome', checkOutcome],
  ['math', checkMath],
  ['answer', checkSpin],
  ['seed', checkSeed],
  ['label', checkLabel],
];

/** Checks the members of a proof that every step relies on. */
function checkShape(proof) {
  must(isObject(proof), 'the proof must be a JSON object');
  must(proof.format === 'spindle proof v1', `the format is «${proof.format}», not «spindle proof v1»`);
  wholeNumber(proof.gameId, U32_MAX, 'gameId');
  wholeNumber(proof.logIndex, Number.MAX_SAFE_INTEGER, 'logIndex');
  must((proof.outcome === undefined) !== (proof.shoe === undefined), 'a proof needs an outcome or a shoe');
  const { index } = proof.shoe ?? proof.outcome ?? {};
  wholeNumber(index, Number.MAX_SAFE_INTEGER, 'the index');
  if (proof.outcome !== undefined) wholeNumber(proof.outcome.code, 0xffff, 'outcome.code');
  for (const name of ['entry', 'salt', 'label', 'tlogProof']) {
    must(typeof proof[name] === 'string', `${name} must be a string`);
  }
}

/** Runs one verification step. If it fails, adds one line to the faults. */
async function attempt(faults, name, step) {
  try {
    return await step();
  } catch (error) {
    faults.push(`${name}: ${error instanceof Fault ? error.message : `the check failed: ${error?.message}`}`);
    return undefined;
  }
}

/**
 * Verifies a proof.
 * @param proof parsed response of `GET …/proof`
 * @param options see verify.d.mts: trusted `logKeys` or a `policy`, and data to compare the proof with
 * @returns `faults`: one line for each fault, empty if the proof is valid; `since`: the size of the earliest
 * checkpoint of `seen` that contains the record, or undefined if the time of logging is unknown
 */
export async function examine(proof, options = {}) {
  const faults = [];
  const trust = await attempt(faults, 'trust', () => trustOf(options));
  const isRead = await attempt(faults, 'proof', () => {
    checkShape(proof);
    return true;
  });
  if (!isRead) return { faults, since: undefined };
  const checkpoint =
    trust && (await attempt(faults, 'checkpoint', () => readCheckpoint(proof.tlogProof, trust)));
  const entry = await attempt(faults, 'entry', () => readEntry(proof));
  const given = { proof, options, trust, checkpoint, entry };
  for (const [name, step] of STEPS) {
    const needs = name === 'logged' ? checkpoint : entry;
    if (needs !== undefined) await attempt(faults, name, () => step(given));
  }
  const seen = checkpoint && (await attempt(faults, 'seen', () => checkSeen(given)));
  return { faults, since: seen?.size };
}

/** Verifies a proof as {@link examine} does. Returns one line for each fault; none if it is valid. */
export async function verify(proof, options = {}) {
  return (await examine(proof, options)).faults;
}

// Repetition of the slot draw and the pool shuffle from revealed seeds

const keystream = async (seed, counter, bytes) => {
  const key = await crypto.subtle.importKey('raw', seed, 'AES-CTR', false, ['encrypt']);
  const zeros = new Uint8Array(bytes);
  return new Uint8Array(await crypto.subtle.encrypt({ name: 'AES-CTR', counter, length: 128 }, key, zeros));
};

/** Converts numbers to integers by scaling all of them with the same power of ten. */
function wholes(numbers, name) {
  const decimals = numbers.map(decimalOf);
  must(!decimals.includes(undefined), `the sheet has a ${name} that is not a number`);
  const least = Math.min(...decimals.map(({ exponent }) => exponent));
  return decimals.map(({ digits, exponent }) => digits * 10n ** BigInt(exponent - least));
}

/**
 * Returns the exact distribution of a PAR sheet as `ends` (bigints): the probability of combination i is
 * (ends[i] − ends[i−1]) ÷ total. The last of the ends is the total.
 */
export function distributionOf({ combinations }) {
  const shares = wholes(
    combinations.map((each) => each.comboProbability),
    'probability',
  );
  const weights = wholes(
    combinations.map((each) => each.displayWeight),
    'weight',
  );
  const classes = new Map();
  combinations.forEach(({ tierId, payMultiplier }, at) => {
    const members = classes.get(`${tierId}/${payMultiplier}`) ?? [];
    classes.set(`${tierId}/${payMultiplier}`, [...members, at]);
  });
  const sumOf = (members, values) => members.reduce((sum, at) => sum + values[at], 0n);
  const parts = [...classes.values()].map((members) => {
    const by = sumOf(members, weights) > 0n ? weights : shares;
    return { members, by, share: sumOf(members, shares), whole: sumOf(members, by) };
  });
  const drawn = parts.filter(({ share }) => share > 0n);
  const common = [...new Set(drawn.map(({ whole }) => whole))].reduce(
    (product, whole) => product * whole,
    1n,
  );
  const masses = combinations.map(() => 0n);
  for (const { members, by, share, whole } of drawn) {
    for (const at of members) masses[at] = (share * by[at] * common) / whole;
  }
  let end = 0n;
  const ends = masses.map((mass) => {
    end += mass;
    return end;
  });
  must(end > 0n, 'no combination of the sheet has a probability above 0');
  return ends;
}

const FIRST_BITS = 16n;
const MORE_BITS = 64n;
const MORE_BYTES = 1024;

/** Returns a function that yields the 64-bit words that extend draws. */
function moreWords(seed) {
  let words = new DataView(new ArrayBuffer(0));
  let at = 0;
  let block = 2n ** 127n;
  return async () => {
    if (at === words.byteLength) {
      words = new DataView((await keystream(seed, packed(block, 16), MORE_BYTES)).buffer);
      block += BigInt(MORE_BYTES / 16);
      at = 0;
    }
    at += 8;
    return words.getBigUint64(at - 8, true);
  };
}

/** Returns the combination that the first bits of a draw determine; undefined if more bits are needed. */
function decided(ends, bits, width) {
  const low = bits * ends.at(-1);
  let from = 0;
  for (let to = ends.length - 1; from < to; ) {
    const middle = (from + to) >> 1;
    if (ends[middle] > low >> width) to = middle;
    else from = middle + 1;
  }
  return low + ends.at(-1) <= ends[from] << width ? from : undefined;
}

/**
 * Returns the indices of the combinations that a seed draws (`spindle slot draw v1`).
 * @param ends distribution of the combinations, from {@link distributionOf}
 */
export async function drawSlots(ends, seed, count) {
  const first = new DataView((await keystream(seed, new Uint8Array(16), 2 * count)).buffer);
  const next = moreWords(seed);
  const known = new Map();
  const codes = new Uint16Array(count);
  for (let at = 0; at < count; at++) {
    const word = first.getUint16(2 * at, true);
    if (!known.has(word)) known.set(word, decided(ends, BigInt(word), FIRST_BITS));
    let code = known.get(word);
    for (let bits = BigInt(word), width = FIRST_BITS; code === undefined; ) {
      bits = (bits << MORE_BITS) | (await next());
      width += MORE_BITS;
      code = decided(ends, bits, width);
    }
    codes[at] = code;
  }
  return codes;
}

/** Returns the order of a pool's tickets that a seed determines (`spindle pool v1`). */
async function shufflePool({ poolSize, prizes }, seed) {
  const order = new Uint16Array(poolSize);
  let filled = 0;
  prizes.forEach(({ count }, place) => {
    order.fill(place + 1, filled, filled + count);
    filled += count;
  });
  // Each word is used with a probability of at least one half. The probability that so many words are too few
  // is below 2^-100.
  const words = new DataView((await keystream(seed, new Uint8Array(16), 16 * poolSize + 4096)).buffer);
  let at = 0;
  for (let i = poolSize - 1; i > 0; i--) {
    const mask = 2 ** (32 - Math.clz32(i)) - 1;
    let j;
    do {
      must(at < words.byteLength, 'the keystream has too few words');
      j = words.getUint32(at, true) & mask;
      at += 4;
    } while (j > i);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

// Comparison of the revealed data of an exhausted block with its entry

/** Returns the root of a Merkle tree with `count` leaves. `digest` computes SHA-256, maybe as a promise. */
async function rootOf(count, leafAt, digest) {
  const hashes = [];
  const join = async () => {
    const right = hashes.pop();
    hashes.push(await digest(joined(Uint8Array.of(1), hashes.pop(), right)));
  };
  for (let at = 0; at < count; at++) {
    hashes.push(await digest(joined(Uint8Array.of(0), await leafAt(at))));
    for (let rest = at; rest % 2 === 1; rest = (rest - 1) / 2) await join();
  }
  while (hashes.length > 1) await join();
  return toHex(hashes[0]);
}

async function checkDraw(entry, { reveal, outcomes }, math, digest) {
  const seed = fromHex(reveal.seed, HASH, 'the seed');
  const nonce = fromHex(reveal.nonce, HASH, 'the nonce');
  const secret = await sha256(ascii('spindle secret v1\n'), nonce, seed);
  must(toHex(secret) === entry.secretHash, 'the revealed seed and nonce do not match the commitment');
  const { gameId, fromIndex, count } = entry;
  const codes = await codesOf(entry, { seed, outcomes, math });
  must(codes.length === count, `${codes.length} of ${count} outcomes are revealed`);
  if (entry.type === 'pool' && math.table !== undefined) {
    const table = await sha256(text8.encode(mathTextOf(math)));
    const order = packedCodes(codes);
    const pool = await sha256(ascii('spindle pool v1\n'), nonce, seed, packed(gameId, 4), table, order);
    must(toHex(pool) === entry.commitment, 'the revealed pool does not match the commitment');
  }
  const place = joined(packed(gameId, 4), packed(fromIndex, 8));
  const key = await sha256(ascii('spindle leaf key v1\n'), nonce, place);
  const nonces = await keystream(key, new Uint8Array(16), HASH * count);
  const leaf = joined(ascii('SPDLout1'), packed(gameId, 4), new Uint8Array(10 + HASH));
  const view = new DataView(leaf.buffer);
  const leafAt = (at) => {
    view.setBigUint64(12, BigInt(fromIndex + at));
    view.setUint16(20, codes[at]);
    leaf.set(nonces.subarray(HASH * at, HASH * (at + 1)), 22);
    return leaf;
  };
  const isSame = (await rootOf(count, leafAt, digest)) === entry.root;
  must(isSame, 'the revealed outcomes do not lead to the logged root');
  return codes;
}

async function checkShoes({ gameId, fromIndex, count, mathHash, root, commitment }, { reveal }, digest) {
  const seeds = fromBase64(reveal.seeds, 'seeds');
  must(seeds.length === HASH * count, `${seeds.length / HASH} of ${count} seeds are revealed`);
  const rules = fromHex(mathHash, HASH, 'mathHash of the entry');
  const all = [ascii('spindle blackjack shoes v1\n')];
  const leafAt = async (at) => {
    const place = joined(packed(gameId, 4), packed(fromIndex + at, 8));
    const seed = seeds.subarray(HASH * at, HASH * (at + 1));
    all.push(await sha256(ascii('spindle blackjack shoe v1\n'), place, rules, seed));
    return joined(ascii('SPDLsho1'), place, all.at(-1));
  };
  must((await rootOf(count, leafAt, digest)) === root, 'the revealed seeds do not lead to the logged root');
  must(toHex(await sha256(...all)) === commitment, 'the revealed seeds do not match the commitment');
}

const packedCodes = (codes) => {
  const view = new DataView(new ArrayBuffer(2 * codes.length));
  codes.forEach((code, at) => {
    view.setUint16(2 * at, code, true);
  });
  return new Uint8Array(view.buffer);
};

/** Returns the codes of a revealed block: drawn again from sheet or table, or else from the response. */
async function codesOf({ type, mathHash, count }, { seed, outcomes, math: { ends, sheet, table } }) {
  if (sheet !== undefined || table !== undefined) {
    const hash = toHex(await sha256(text8.encode(mathTextOf({ sheet, table }))));
    must(hash === mathHash, `the hash of the ${sheet ? 'sheet' : 'table'} differs from the log`);
    return type === 'pool' ? shufflePool(table, seed) : drawSlots(ends, seed, count);
  }
  const view = new DataView(fromBase64(outcomes, 'outcomes').buffer);
  return Uint16Array.from({ length: view.byteLength / 2 }, (_, at) => view.getUint16(2 * at, true));
}

/**
 * Compares the revealed data of an exhausted block with its logged entry.
 * @param answer response of `GET /games/{id}/blocks/{number}`, with `outcomes` if no sheet or table is given
 * @param options `sheet` with its `ends`, or `table`, to draw again; `digest`: a SHA-256 faster than
 * WebCrypto's
 * @returns `codes`: the outcome codes of a slot block or pool
 */
export async function checkReveal(answer, { digest = sha256, ...math } = {}) {
  const faults = [];
  const codes = await attempt(faults, `number ${answer?.number}`, async () => {
    const entry = readEntry(answer);
    must(isObject(answer.reveal), 'the block is not revealed');
    if (entry.type === 'shoes') return checkShoes(entry, answer, digest);
    return checkDraw(entry, answer, math, digest);
  });
  return { faults, codes };
}

/**
 * Verifies a revealed block (response of `GET /games/{id}/blocks/{number}`): the log contains its entry, and
 * the entry commits to the outcomes of its seed. @param options as for {@link examine}
 */
export async function examineBlock(answer, options = {}) {
  const faults = [];
  const { sheet, table } = options;
  const ends = sheet && (await attempt(faults, 'math', () => distributionOf(sheet)));
  const trust = await attempt(faults, 'trust', () => trustOf(options));
  const checkpoint =
    trust && (await attempt(faults, 'checkpoint', () => readCheckpoint(answer.tlogProof, trust)));
  const given = { proof: answer, options, checkpoint };
  if (checkpoint !== undefined) await attempt(faults, 'logged', () => checkLogged(given));
  given.entry = await attempt(faults, 'entry', () => readEntry(answer));
  if (given.entry === undefined) return faults;
  await attempt(faults, 'math', () => checkMath(given));
  await attempt(faults, 'label', () => checkLabel(given));
  if (faults.some((fault) => fault.startsWith('math: '))) return faults;
  return [...faults, ...(await checkReveal(answer, ends ? { sheet, ends } : { table })).faults];
}

/** Returns the entry of a block response if it opens the commitment (32 bytes, hexadecimal) of a record. */
export async function openEntry(answer, commitment) {
  const faults = [];
  const entry = await attempt(faults, `number ${answer?.number}`, async () => {
    const read = readEntryText(answer.entry, [...ENTRY_TYPES, 'void', 'lost']);
    const opened = toHex(await commitmentOf(answer));
    must(opened === commitment, 'the entry differs from the log');
    return read;
  });
  return { faults, entry };
}

/** Returns the checkpoint of a note that a log of the options and its quorum of witnesses signed. */
export async function openCheckpoint(note, options) {
  const faults = [];
  const trust = await attempt(faults, 'trust', () => trustOf(options));
  const checkpoint = trust && (await attempt(faults, 'checkpoint', () => witnessed(note, trust)));
  return { faults, checkpoint };
}

/** Verifies that a note and a checkpoint are of one log. Returns the fault; undefined if there is none. */
export async function compare(note, newest, options) {
  const faults = [];
  await attempt(faults, 'log', async () => {
    const { checkpoint } = await trustedCheckpoint(note, await trustOf(options));
    must(checkpoint.origin === newest.origin, `the checkpoint belongs to the log ${checkpoint.origin}`);
    await checkContains(checkpoint, newest, options.readTile);
  });
  return faults[0];
}
