import { ApiProperty } from '@nestjs/swagger';

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

  @ApiProperty({ type: String, description: 'Stable name of the error.', example: 'ValidationFailed' })
  code: string;

  @ApiProperty({ type: [FieldProblemDto], required: false })
  errors?: FieldProblemDto[];
}
