/** The URL of a page of the dashboard of a service. */
export const dashboardPage = (url: string, page = ''): string =>
  page === '' ? `${url}/ui` : `${url}/ui/${page}`
