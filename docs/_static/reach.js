// What the theme leaves undone for those who use a keyboard or a screen reader.
addEventListener("DOMContentLoaded", () => {
  for (const one of document.querySelectorAll("[role=heading]:not([aria-level])")) one.setAttribute("aria-level", "2");
  for (const one of document.querySelectorAll("pre, .table-wrapper")) if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
});
