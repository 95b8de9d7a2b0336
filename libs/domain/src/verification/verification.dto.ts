import {
  Id,
  Integer,
  Part,
  Parts,
  PartOrNull,
  Text,
  TextOrNull,
  Texts,
  TimeOrNull,
  Word,
  YesNo,
} from '../fields/fields-of-answers';
import { type TaskKind, taskKinds } from '../tasks/task';

const credentialsStates = ['none', 'valid', 'expired', 'invalid'] as const;
type CredentialsState = (typeof credentialsStates)[number];

/** A step in which a picture was made. */
export class VerifiedActionDto {
  @Text("In C2PA's words.", { example: 'c2pa.created' }) action: string;
  @TextOrNull('What it made, in IPTC\'s words "Digital Source Type".', { example: 'trainedAlgorithmicMedia' })
  source_type: string | null;
  @TextOrNull('What did it: of our pictures the model.', { example: 'shapes' }) agent: string | null;
  @TextOrNull('Its version: of our pictures the content hash of the model.') agent_version: string | null;
}

/** A picture that a picture was made from. */
export class VerifiedIngredientDto {
  @TextOrNull('Of our pictures the field of the request.', { example: 'image' }) title: string | null;
  @TextOrNull('`parentOf`: it was edited; `inputTo`: it was looked at.', { example: 'parentOf' })
  relationship: string | null;
  @Word(credentialsStates, 'CredentialsState', 'Of its own credentials.') state: CredentialsState;
}

/** Content Credentials (C2PA) of a picture. */
export class VerifiedCredentialsDto {
  @Word(
    credentialsStates,
    'CredentialsState',
    '`valid`: nothing has changed since somebody signed it; `issuer` says who. Anybody can sign: whether to believe them is yours to say. ' +
      '`expired`: nothing has changed either, but the certificate has ended, and no time stamp proves that it was signed before.',
  )
  state: CredentialsState;
  @YesNo('Whether it was signed with a certificate of this service, whatever has become of the record.') own: boolean;
  @TextOrNull("The organisation in the signer's certificate.", { example: 'Darkroom (self-made)' })
  issuer: string | null;
  @TimeOrNull('When it was signed at the latest, by a time stamp of a server that is trusted; null without one.')
  signed_at: string | null;
  @Parts(VerifiedActionDto, 'The first 100.') actions: VerifiedActionDto[];
  @Parts(VerifiedIngredientDto, 'The first 100.') ingredients: VerifiedIngredientDto[];
  @Texts("C2PA's codes of what does not hold.", { example: ['assertion.dataHash.mismatch'] }) problems: string[];
}

/** Your record that made a picture. */
export class VerifiedRecordDto {
  @Id() id: string;
  @Word(taskKinds, 'TaskKind') kind: TaskKind;
  @Integer('Its place in `images`, from 0.') index: number;
}

/** What a picture says of itself. */
export class VerificationDto {
  @YesNo('Whether it says that a model made it or a part of it.') marked: boolean;
  @TextOrNull('What it says that it is, in XMP or its credentials, in IPTC\'s words "Digital Source Type".', {
    example: 'trainedAlgorithmicMedia',
  })
  source_type: string | null;
  @Part(VerifiedCredentialsDto) credentials: VerifiedCredentialsDto;
  @PartOrNull(VerifiedRecordDto, 'Your record whose picture it is, byte for byte; null if there is none.')
  record: VerifiedRecordDto | null;

  static from(
    { marked, source_type, credentials }: Pick<VerificationDto, 'marked' | 'source_type' | 'credentials'>,
    record: VerifiedRecordDto | null,
  ): VerificationDto {
    return { marked, source_type, credentials, record };
  }
}
