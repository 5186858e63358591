import { createHash } from 'node:crypto'
import { extname } from 'node:path/posix'
import type { Context } from 'koa'
import { AppError } from '../../errors.ts'
import type { Dashboard } from '../../package/dashboard.ts'
import { hasCurrent, PAGE_HEADERS } from '../http/page.ts'
import { own, type PublicRoute, publicRoute, type Reply } from '../route.ts'

const tag = 'Dashboard'

let opened: (() => Promise<Dashboard>) | null = null

/** Imports its module at the first request: most nodes never serve the dashboard and need their memory for runs. */
const dashboard = async (): Promise<Dashboard> => {
  const { openDashboard } = await import('../../package/dashboard.ts')
  return (opened ??= openDashboard())()
}

/** The page checks for a new version each time; the name of an asset changes with its content. */
const REVALIDATED = 'no-cache'
const FOREVER = 'public, max-age=31536000, immutable'

const sendFile = async (ctx: Context, path: string, cache: string): Promise<Reply> => {
  const file = (await dashboard()).get(path)
  if (!file) throw new AppError('not_found', `No file ${path} of the dashboard`)
  const isCompressed = ctx.acceptsEncodings('br', 'identity') === 'br'
  const bytes = isCompressed ? file.brotli : file.bytes
  const etag = `"${createHash('sha256').update(bytes).digest('base64url')}"`
  ctx.set(PAGE_HEADERS)
  ctx.vary('Accept-Encoding')
  if (hasCurrent(ctx, { type: extname(path), etag, cache })) return own
  if (isCompressed) ctx.set('Content-Encoding', 'br')
  ctx.body = bytes
  return own
}

const PAGES = [
  { path: '/ui', operationId: 'getDashboard', summary: 'Get the dashboard' },
  { path: '/ui/', operationId: 'getDashboardRoot', summary: 'Get the dashboard' },
  { path: '/ui/*ui_page', operationId: 'getDashboardPage', summary: 'Get a page of the dashboard' },
] as const

export const dashboardRoutes: readonly PublicRoute[] = [
  publicRoute({
    method: 'GET',
    path: '/ui/assets/:ui_asset',
    operationId: 'getDashboardAsset',
    summary: 'Get a script or a style sheet of the dashboard',
    tag,
    errors: ['not_found', 'unavailable'],
    reply: { kind: 'bytes', hasEtag: true },
    handle: ({ ctx, params: { ui_asset } }) => sendFile(ctx, `assets/${ui_asset}`, FOREVER),
  }),

  ...PAGES.map((page) =>
    publicRoute({
      method: 'GET',
      ...page,
      tag,
      anyQuery: true,
      errors: ['unavailable'],
      reply: { kind: 'bare', type: 'text/html', hasEtag: true },
      handle: ({ ctx }) => sendFile(ctx, 'index.html', REVALIDATED),
    }),
  ),
]
