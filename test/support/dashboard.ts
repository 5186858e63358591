import type { Answer } from './http.ts'

/** The headers that a browser sends for a page of the dashboard. */
export const FROM_PAGE = { 'Svc-Dashboard': '1', 'Sec-Fetch-Site': 'same-origin' } as const

/** A visitor of the dashboard: a page that keeps one cookie, and sends no other credential. */
export interface Visitor {
  send(
    method: string,
    path: string,
    sent?: { readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> },
  ): Promise<Answer>
  /** The cookie as the browser sends it; empty without one. */
  cookie: string
}

/** `headers` replaces those of the page; an empty value sends none. */
export const openVisitor = (url: string, cookie = ''): Visitor => {
  const visitor: Visitor = {
    cookie,
    async send(method, path, { body, headers } = {}) {
      const all: Record<string, string> = { ...FROM_PAGE, Cookie: visitor.cookie, ...headers }
      const given = Object.entries(all).filter(([, value]) => value !== '')
      const reply = await fetch(url + path, {
        method,
        headers: Object.fromEntries(given),
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const set = reply.headers.get('set-cookie')
      if (set !== null) visitor.cookie = set.includes('Max-Age=0') ? '' : (set.split(';')[0] ?? '')
      const text = await reply.text()
      return {
        status: reply.status,
        headers: reply.headers,
        text,
        json: text === '' ? null : JSON.parse(text),
      }
    },
  }
  return visitor
}

export const signedIn = async (url: string, token: string, path = '/v1/sign-in'): Promise<Visitor> => {
  const visitor = openVisitor(url)
  const { status, text } = await visitor.send('POST', path, { body: { token } })
  if (status !== 200) throw new Error(`Expected the sign-in to be accepted, got ${status} ${text}`)
  return visitor
}
