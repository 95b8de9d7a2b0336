import type { ManifestStore, ReadManifest } from './c2pa';

/** What a picture says of itself, in the form in which it is answered and printed. */
export interface PictureReport {
  /** Whether it says anywhere that a model made it or a part of it. */
  marked: boolean;
  /** Its word of IPTC's "Digital Source Type", such as `trainedAlgorithmicMedia`; null where it says none. */
  source_type: string | null;
  credentials: CredentialsReport;
  /** The record that its credentials name; who has signed may claim what they want. */
  record: { id: string; index: number } | null;
}

/**
 * `valid`: what is signed is as it was; whether its signer is to be trusted is for the reader to say. `expired`: the
 * same, but the certificate has ended, and no time stamp that can be believed says that it was signed before.
 */
export type CredentialsState = 'none' | 'valid' | 'expired' | 'invalid';

export interface CredentialsReport {
  state: CredentialsState;
  /** Whether it is signed with a certificate of this service. */
  own: boolean;
  /** The organisation in the certificate. */
  issuer: string | null;
  /** By a time stamp of a server that is trusted: anybody may put another one into a picture, and it stays valid. */
  signed_at: string | null;
  actions: { action: string; source_type: string | null; agent: string | null; agent_version: string | null }[];
  ingredients: { title: string | null; relationship: string | null; state: CredentialsState }[];
  /** C2PA's codes of what does not hold. */
  problems: string[];
}

const none: CredentialsReport = {
  ...{ state: 'none', own: false, issuer: null, signed_at: null },
  ...{ actions: [], ingredients: [], problems: [] },
};

/** IPTC's vocabulary "Digital Source Type". */
export const sourceTypes = 'http://cv.iptc.org/newscodes/digitalsourcetype/';
/** Words of it that say that a model made a picture or a part of it. */
const marks = ['trainedAlgorithmicMedia', 'compositeWithTrainedAlgorithmicMedia'];

/** Of each list and each text, as a file may have any number and length. */
const [mostItems, mostLetters] = [100, 500];

/**
 * @param words of the vocabulary, in the picture's XMP
 * @param store undefined where the picture has no credentials
 */
export function reportOf(words: readonly string[], store: ManifestStore | undefined): PictureReport {
  const inXmp = words.find(isMark) ?? words.at(0) ?? null;
  if (!store) return { marked: isMark(inXmp), source_type: inXmp, credentials: none, record: null };
  const manifest: ReadManifest = store.manifests[store.active_manifest] ?? {};
  const { issuer, common_name: name, time } = manifest.signature_info ?? {};
  const actions = actionsOf(manifest);
  const problems = first(store.validation_status).map(({ code }) => textOf(code) ?? '');
  const state = store.validation_state === 'Invalid' ? failedState(store.validation_status) : 'valid';
  const failures = failuresIn(store.validation_results);
  const credentials: CredentialsReport = {
    state,
    own: state !== 'invalid' && failures?.some(isOfTrust) === false,
    issuer: textOf(issuer) ?? textOf(name),
    signed_at: isTimeTrusted(store) ? textOf(time) : null,
    actions: actions.map(({ action, digitalSourceType, softwareAgent }) => ({
      action: textOf(action) ?? '',
      source_type: wordOf(digitalSourceType),
      agent: textOf(typeof softwareAgent === 'object' ? softwareAgent?.name : softwareAgent),
      agent_version: textOf(typeof softwareAgent === 'object' ? softwareAgent?.version : undefined),
    })),
    ingredients: first(manifest.ingredients).map(
      ({ title, relationship, active_manifest: own, validation_results }) => ({
        title: textOf(title),
        relationship: textOf(relationship),
        state: own === undefined ? 'none' : stateOfIngredient(validation_results),
      }),
    ),
    problems: problems.filter((code) => !isOfTrust({ code })),
  };
  const said = credentials.actions.flatMap(({ source_type: type }) => type ?? []);
  const marked = [inXmp, ...said].some(isMark);
  return { marked, source_type: inXmp ?? said.at(-1) ?? null, credentials, record: recordOf(actions) };
}

interface Action {
  action?: unknown;
  digitalSourceType?: unknown;
  softwareAgent?: string | { name?: unknown; version?: unknown } | null;
  parameters?: { record?: unknown; index?: unknown } | null;
}

function actionsOf({ assertions }: ReadManifest): readonly Action[] {
  const ofActions = first(assertions).filter(({ label }) => label.startsWith('c2pa.actions'));
  return first(ofActions.flatMap(({ data }) => first((data as { actions?: Action[] }).actions)));
}

/** More than a record ever has. */
const mostPictures = 100;

function recordOf(actions: readonly Action[]): PictureReport['record'] {
  for (const { parameters } of actions) {
    const { record, index } = parameters ?? {};
    // Anybody can write anything there.
    const isRecord = typeof record === 'string' && /^[\w-]{24}$/.test(record);
    if (isRecord && typeof index === 'number' && Number.isInteger(index) && index >= 0 && index < mostPictures)
      return { id: record, index };
  }
  return null;
}

/** The last part of a word's address in the vocabulary. */
const wordOf = (uri: unknown): string | null => textOf(uri)?.split('/').at(-1) ?? null;

const isMark = (word: string | null): boolean => marks.includes(word ?? '');

interface Failure {
  code: string;
}

const isOfTrust = ({ code }: Failure): boolean => code === 'signingCredential.untrusted';

/** Of credentials that do not hold, or not any more. */
function failedState(failures: readonly Failure[] = []): CredentialsState {
  const problems = failures.filter((each) => !isOfTrust(each));
  const isAged = problems.length > 0 && problems.every(({ code }) => code === 'signingCredential.expired');
  return isAged ? 'expired' : 'invalid';
}

function stateOfIngredient(results: unknown): CredentialsState {
  const failures = failuresIn(results) ?? [];
  return failures.every(isOfTrust) ? 'valid' : failedState(failures);
}

const failuresIn = (results: unknown): readonly Failure[] | undefined =>
  (results as ManifestStore['validation_results'])?.activeManifest?.failure;

/** C2PA's codes of the time stamps. */
const timeStampsIn = ({ validation_results: results }: ManifestStore): string[] =>
  Object.values(results?.activeManifest ?? {})
    .flat()
    .flatMap(({ code }) => (code.startsWith('timeStamp.') ? code : []));

/** Whether it has a time stamp of a server that is not trusted. */
export const isTimeUntrusted = (store: ManifestStore): boolean => timeStampsIn(store).includes('timeStamp.untrusted');

/** Of several, as a stranger may add one, all have to be. */
const isTimeTrusted = (store: ManifestStore): boolean => {
  const codes = timeStampsIn(store);
  const isGood = (code: string): boolean => ['timeStamp.validated', 'timeStamp.trusted'].includes(code);
  return codes.includes('timeStamp.trusted') && codes.every(isGood);
};

const first = <T>(list: readonly T[] = []): readonly T[] => list.slice(0, mostItems);

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value.slice(0, mostLetters) : null);
