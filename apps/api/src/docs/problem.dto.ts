import { type ErrorCode, errorCodes, problemType } from '@app/domain';
import { ApiProperty } from '@nestjs/swagger';
import { Integer, Part, Text, TextOrNull } from '@app/domain/http';

/** Address of the service in examples. */
export const exampleUrl = 'https://darkroom.example';

/** Documents the stable name of an error. */
export const ApiCode = () =>
  ApiProperty({
    enum: errorCodes,
    enumName: 'ErrorCode',
    enumSchema: { description: 'Stable name of an error; docs/errors.md says what each means.' },
    example: 'ValidationFailed',
  });

/** One invalid place in the request; the last of very many says how many more there are. */
export class FieldProblemDto {
  @Text('RFC 6901 pointer into the body.', { required: false, example: '/cfg' }) pointer?: string;
  @Text('Name of the query parameter, if it is one.', { required: false }) parameter?: string;
  @Text('', { example: 'must be from 1 to 20, got 25' }) message: string;
}

/** RFC 9457 body of every error. */
export class ProblemDto {
  @Text('Where the code is explained.', {
    example: problemType(exampleUrl, 'ValidationFailed'),
  })
  type: string;
  @Text('', { example: 'Bad Request' }) title: string;
  @Integer('', { example: 400 }) status: number;
  @Text() detail: string;
  @Text('The id of the request.') instance: string;
  @ApiCode() code: ErrorCode;
  @ApiProperty({ type: [FieldProblemDto], required: false }) errors?: FieldProblemDto[];
}

/** The fault, in the shape of OpenAI's API. */
export class OpenaiErrorDto {
  @Text('', { example: '"/n" must be from 1 to 8, got 9.' }) message: string;
  @Text('', { example: 'invalid_request_error' }) type: string;
  @TextOrNull('The field that is wrong, if it is one.', { example: 'n' }) param: string | null;
  @ApiCode() code: ErrorCode;
}

/** Body of every error below `/v1/images`. */
export class OpenaiProblemDto {
  @Part(OpenaiErrorDto) error: OpenaiErrorDto;
}
