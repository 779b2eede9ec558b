// Package skill makes loaded skills work: what a model is shown of them, what
// they may run, and what their text may cause.
//
// Start with [Engine], one for a server, and [Session], what one client has done
// with skills: [Session.Load], [Session.Activate], [Session.Run]. The pure half
// stands by itself: [Page] renders a skill, [Match] and [Permits] are the two
// policies. Files of the run workspace and processes belong to package sandbox.
package skill
