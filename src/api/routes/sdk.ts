import { createHash } from 'node:crypto'
import { isNotModified } from '../http/conditions.ts'
import { own, publicRoute } from '../route.ts'

/** The installable package of this version, made at its first request: most nodes never serve it. */
let served: Promise<{ readonly bytes: Buffer; readonly etag: string }> | null = null

const read = async () => {
  const { readPackage } = await import('../../package/readPackage.ts')
  const bytes = await readPackage()
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` }
}

const current = (): NonNullable<typeof served> => {
  const reading = (served ??= read())
  reading.catch(() => (served = null)) // it may be built meanwhile
  return reading
}

export const sdkRoutes = [
  publicRoute({
    method: 'GET',
    path: '/sdk/svc.tgz',
    operationId: 'getPackage',
    summary: 'Get the npm package of this version',
    description:
      'Contains the types of `svc` for functions, the client, the command line and the service itself. ' +
      'Install it with `npm i -D <address of the service>/sdk/svc.tgz`.',
    tag: 'Docs',
    errors: ['unavailable'],
    reply: {
      kind: 'bytes',
      type: 'application/gzip',
      description: 'A tarball as of `npm pack`',
      hasEtag: true,
    },
    handle: async ({ ctx }) => {
      const { bytes, etag } = await current()
      ctx.status = isNotModified(ctx.get('If-None-Match'), etag) ? 304 : 200
      ctx.set({ ETag: etag, 'Cache-Control': 'public, no-cache', 'Content-Type': 'application/gzip' })
      if (ctx.status === 200) ctx.body = bytes
      return own
    },
  }),
]
