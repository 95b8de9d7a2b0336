import type { ErrorCode } from '@app/domain';
import { ApiProperty } from '@nestjs/swagger';
import { ApiCode } from './problem.dto';

/** What is wrong, in the shape of OpenAI's API. */
export class OpenaiErrorDto {
  @ApiProperty({ type: String, example: '"/n" must be from 1 to 8, got 9.' })
  message: string;

  @ApiProperty({ type: String, example: 'invalid_request_error' })
  type: string;

  @ApiProperty({ type: String, nullable: true, description: 'The field that is wrong, if it is one.', example: 'n' })
  param: string | null;

  @ApiCode()
  code: ErrorCode;
}

/** Body of every error below `/v1/images`. */
export class OpenaiProblemDto {
  @ApiProperty({ type: OpenaiErrorDto })
  error: OpenaiErrorDto;
}
