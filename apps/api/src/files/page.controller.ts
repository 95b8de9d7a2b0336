import { UnauthorizedError } from '@app/domain';
import { Controller, Get, Headers, HttpCode, Param, Post, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Response } from 'express';
import { Public } from '../http/caller.decorator';
import { RouteNotFoundError } from '../http/http-errors';
import { namesEtag } from '../http/response-headers';
import { encodings, type PageFile, PageFiles } from './page-files';
import { SignIn } from './sign-in';

/** The page runs and loads only its own files; previews come as `data:`, pictures that the user drops in as `blob:`. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join(';');

/** The links of the page for missing paths are as long as the path is deep, which the caller chooses. */
const deepestMissing = 10;

/** The playground, which needs no key: its user types one in, or comes with a code. */
@ApiExcludeController()
@Public()
@Controller()
export class PageController {
  constructor(
    private readonly files: PageFiles,
    private readonly signIn: SignIn,
  ) {}

  @Get()
  async index(@Res() response: Response): Promise<void> {
    await this.sendPage('index.html', response);
  }

  /** The documentation, which is built with the page. */
  @Get('docs')
  async docs(@Res() response: Response): Promise<void> {
    await this.sendPage('docs.html', response);
  }

  @Get('docs/*path')
  async docsPage(@Param('path') path: string[], @Res() response: Response): Promise<void> {
    await this.sendPage(`docs/${path.join('/')}.html`, response);
  }

  /** Names of assets contain a hash of their content. */
  @Get('assets/:name')
  async asset(@Param('name') name: string, @Res() response: Response): Promise<void> {
    await this.send(`assets/${name}`, 'public, max-age=31536000, immutable', response);
  }

  /** The code comes in a header, so that no unread body needs a bound here. */
  @Post('sign-in')
  @HttpCode(200)
  async exchange(
    @Headers('authorization') authorization: string | undefined,
    @Res({ passthrough: true }) response: Response,
  ): Promise<{ api_key: string }> {
    const [, code] = /^code ([\w-]{1,100})$/i.exec(authorization ?? '') ?? [];
    if (code === undefined) throw new UnauthorizedError('A sign-in code is needed: Authorization: Code <code>.');
    response.setHeader('Cache-Control', 'no-store');
    return { api_key: await this.signIn.exchange(code) };
  }

  /** Sends a page at the one path to which its links are relative; a trailing slash would break them. */
  private async sendPage(path: string, response: Response): Promise<void> {
    const asked = response.req.path;
    let end = asked.length;
    while (end > 1 && asked[end - 1] === '/') end--;
    const proper = asked.slice(0, end);
    if (asked !== proper) return response.redirect(301, proper);
    response.setHeader('Content-Security-Policy', contentSecurityPolicy);
    if (await this.files.find(path)) await this.send(path, 'no-cache', response);
    else await this.sendMissing(response);
  }

  /**
   * A page for people who follow a dead link, and the error for programs. The page's links are relative to `/docs/`.
   * @throws RouteNotFoundError
   */
  private async sendMissing(response: Response): Promise<void> {
    const { req: request } = response;
    const page = request.accepts(['json', 'html']) === 'html' && (await this.files.find('errors/404.html'));
    if (!page) throw new RouteNotFoundError('GET', request.path);
    const depth = request.path.split('/').length - 2;
    if (depth > deepestMissing) throw new RouteNotFoundError('GET', request.path);
    const top = '../'.repeat(depth);
    response.set({ 'Cache-Control': 'no-cache', Vary: 'Accept' }).status(404).type('html');
    response.send(page.bytes.toString().replaceAll('"../', `"${top}`));
  }

  /** @throws RouteNotFoundError */
  private async send(path: string, cacheControl: string, response: Response): Promise<void> {
    const file = await this.files.find(path);
    if (!file) throw new RouteNotFoundError('GET', response.req.path);
    response.set({
      'Content-Type': file.contentType,
      'Cache-Control': cacheControl,
      ETag: file.etag,
      Vary: 'Accept-Encoding',
    });
    if (namesEtag(response.req.headers['if-none-match'], file.etag)) {
      response.status(304).end();
      return;
    }
    response.end(await bodyOf(file, response));
  }
}

async function bodyOf(file: PageFile, response: Response): Promise<Buffer> {
  const encoding = encodings.find((name) => response.req.acceptsEncodings(name) !== false);
  const body = encoding ? await file.encoded(encoding) : file.bytes;
  if (encoding) response.setHeader('Content-Encoding', encoding);
  response.setHeader('Content-Length', body.length);
  return body;
}
