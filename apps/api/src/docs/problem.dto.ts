import type { ErrorCode } from '@app/domain';
import { errorCodes } from '@app/domain';
import { ApiProperty } from '@nestjs/swagger';

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
  @ApiProperty({ type: String, required: false, description: 'RFC 6901 pointer into the body.', example: '/cfg' })
  pointer?: string;

  @ApiProperty({ type: String, required: false, description: 'Name of the query parameter, if it is one.' })
  parameter?: string;

  @ApiProperty({ type: String, example: 'must be from 1 to 20, got 25' })
  message: string;
}

/** RFC 9457 body of every error. */
export class ProblemDto {
  @ApiProperty({ type: String, example: 'about:blank' })
  type: string;

  @ApiProperty({ type: String, example: 'Bad Request' })
  title: string;

  @ApiProperty({ type: 'integer', example: 400 })
  status: number;

  @ApiProperty({ type: String })
  detail: string;

  @ApiProperty({ type: String, description: 'The id of the request.' })
  instance: string;

  @ApiCode()
  code: ErrorCode;

  @ApiProperty({ type: [FieldProblemDto], required: false })
  errors?: FieldProblemDto[];
}
