import { createHash } from 'node:crypto'
import type { Context } from 'koa'
import { hasCurrent, PAGE_HEADERS } from '../http/page.ts'
import { own, type PublicAsk, type PublicRoute, publicRoute, type Route } from '../route.ts'

const tag = 'Docs'

interface Served {
  readonly text: string
  readonly etag: string
}

/** Imports its modules at the first request: most nodes never serve the docs and need their memory for runs. */
const build = async (routes: readonly Route[], version: string): Promise<Served> => {
  const { toOpenApi } = await import('../openapi/document.ts')
  const text = JSON.stringify(toOpenApi(routes, { version }))
  return { text, etag: `"${createHash('sha256').update(text).digest('base64url')}"` }
}

const maxAge = (seconds: number): string => `public, max-age=${seconds}`

const sendText = (ctx: Context, type: string, text: string) => {
  const etag = `"${createHash('sha256').update(text).digest('base64url')}"`
  if (!hasCurrent(ctx, { type, etag, cache: maxAge(3600) })) ctx.body = text
  return own
}

const sendPage = async (ctx: Context, path: string) => {
  const { pageAt } = await import('../docs/pages.ts')
  return sendText(ctx, 'text/markdown; charset=utf-8', (await pageAt(path)).text)
}

const sendAsset = async ({ ctx }: Pick<PublicAsk, 'ctx'>, name: string, seconds: number) => {
  const { assetOf } = await import('../openapi/docsPage.ts')
  const { type, etag, size, read } = await assetOf(name)
  ctx.set(PAGE_HEADERS)
  if (hasCurrent(ctx, { type, etag, cache: maxAge(seconds) })) return own
  ctx.length = size
  ctx.body = read() // Koa closes it unread in a reply to HEAD
  return own
}

/** The endpoints that describe the API: every route of `allRoutes`, these included. */
export const docsRoutesOf = (allRoutes: () => readonly Route[]): PublicRoute[] => {
  const documents = new Map<string, Promise<Served>>()
  const documentOf = (version: string): Promise<Served> => {
    const document = documents.get(version) ?? build(allRoutes(), version)
    documents.set(version, document)
    return document
  }
  return [
    publicRoute({
      method: 'GET',
      path: '/openapi.json',
      operationId: 'getOpenApiDocument',
      summary: 'Get the OpenAPI document',
      tag,
      reply: { kind: 'bare', description: 'This document, in OpenAPI 3.1', hasEtag: true },
      handle: async ({ ctx, deps: { about } }) => {
        const { text, etag } = await documentOf(about.version)
        if (!hasCurrent(ctx, { type: 'application/json; charset=utf-8', etag, cache: maxAge(0) }))
          ctx.body = text
        return own
      },
    }),

    publicRoute({
      method: 'GET',
      path: '/docs',
      operationId: 'getDocsPage',
      summary: 'Get the interactive docs page',
      tag,
      reply: { kind: 'bare', type: 'text/html', hasEtag: true },
      handle: (ask) => sendAsset(ask, 'index.html', 0),
    }),

    publicRoute({
      method: 'GET',
      path: '/docs/:asset',
      operationId: 'getDocsAsset',
      summary: 'Get a page of the documentation as Markdown, or a file of the docs page',
      tag,
      errors: ['not_found'],
      reply: { kind: 'bytes', hasEtag: true },
      handle: (ask) =>
        ask.params.asset.endsWith('.md')
          ? sendPage(ask.ctx, ask.params.asset)
          : sendAsset(ask, ask.params.asset, 3600),
    }),

    publicRoute({
      method: 'GET',
      path: '/docs/guides/:guide',
      operationId: 'getGuide',
      summary: 'Get a guide as Markdown',
      tag,
      errors: ['not_found'],
      reply: { kind: 'bytes', type: 'text/markdown', hasEtag: true },
      handle: ({ ctx, params: { guide } }) => sendPage(ctx, `guides/${guide}`),
    }),

    publicRoute({
      method: 'GET',
      path: '/llms.txt',
      operationId: 'getLlmsText',
      summary: 'List the documentation for models',
      tag,
      reply: { kind: 'bytes', type: 'text/plain', hasEtag: true },
      handle: async ({ ctx, deps: { publicUrl } }) => {
        const { llmsText } = await import('../docs/pages.ts')
        return sendText(ctx, 'text/plain; charset=utf-8', await llmsText(publicUrl()))
      },
    }),
  ]
}
